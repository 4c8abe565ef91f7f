"""Makes scripts and styles small when a wheel is built: a third less for readers to load, zipped.
Where there is no minifier (see `build-system` in pyproject.toml), they lose their comments, which
are most of that. A checkout and an editable install serve the readable files."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MIME = {".css": "text/css", ".js": "application/javascript"}
AS_MEDIUM = "@media container and "


def readable_files(static: Path) -> dict[str, str]:
    """The texts of the scripts and styles of a folder, by their path in it."""
    return {
        path.relative_to(static).as_posix(): path.read_text("utf-8")
        for path in sorted(static.rglob("*"))
        if path.suffix in MIME
    }


def small_files(static: Path) -> dict[str, str]:
    return {name: small(name, text) for name, text in readable_files(static).items()}


def small(name: str, text: str) -> str:
    import minify

    # The minifier leaves what stands in @container as it is, so it takes that for a medium.
    text = text.replace("@container ", AS_MEDIUM)
    made: str = minify.string(MIME[Path(name).suffix], text)
    # A script may be a part of another one, and the next part begins with a string.
    end = "\n" if name.endswith(".js") else ""
    return made.replace(AS_MEDIUM, "@container ") + end


def files_without_comments(static: Path) -> dict[str, str]:
    return {name: without_comments(text) for name, text in readable_files(static).items()}


def without_comments(source: str) -> str:
    """A script or style without comments, blank lines and indentation. Comments have lines of their
    own, or follow code in a script after ` // `: tests/test_packaging.py looks for others."""
    lines = []
    in_comment = False
    for line in source.splitlines():
        line = line.partition(" // ")[0].strip()
        in_comment = in_comment or line.startswith("/*")
        if line and not in_comment and not line.startswith("//"):
            lines.append(f"{line}\n")
        if line.endswith("*/"):
            in_comment = False
    return "".join(lines)


class SmallFiles(BuildHookInterface[Any]):
    folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        try:
            files = small_files(Path(self.root) / "static")
        except ModuleNotFoundError:
            self.app.display_warning("No minifier: scripts and styles only lose their comments.")
            files = files_without_comments(Path(self.root) / "static")
        self.folder = Path(tempfile.mkdtemp())
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
            build_data["force_include"][str(path)] = f"commentd_static/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder)
