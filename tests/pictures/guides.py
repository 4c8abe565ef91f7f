"""Pictures of the widget on blogs that follow the guides; run by hand: `python
tests/pictures/guides.py FOLDER`, with `--only NAME` for some of the blogs. support/sites.py says
what has to be installed, and test_guides.py tries the same blogs in the long tier."""

import argparse
import sys
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support import blog, sites


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=sites.SITES, metavar="NAME")
    options = parser.parse_args()
    folder = options.folder.resolve()
    with blog.own_app() as app, blog.service(app) as service, blog.chromium() as browser:
        blog.conversation(app, sites.PATH)
        for name in options.only or sites.SITES:
            try:
                built = sites.make(folder, name, service)
            except sites.NotHere as error:
                print(f"{name} can't be had: {error}")
                continue
            packages = folder / "packages" / sites.SITES[name].generator
            with sites.served(built) as url:
                for width, scheme in product((390, 1280), ("light", "dark")):
                    page = sites.opened(browser, packages, width, scheme)
                    page.goto(url + sites.PATH)
                    page.locator("commentd-thread textarea").first.focus()
                    blog.settle(page)
                    file = folder / f"{name}-{width}-{scheme}.png"
                    page.screenshot(path=file, full_page=True, animations="disabled")
                    page.context.close()
                    print(file, flush=True)


if __name__ == "__main__":
    main()
