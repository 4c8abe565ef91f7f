"""Makes scripts and styles small when a wheel is built: a tenth less for readers to load, zipped. A
checkout and an editable install serve the readable files, and so does a wheel that is built where
there is no minifier (see `build-system` in pyproject.toml)."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MIME = {".css": "text/css", ".js": "application/javascript"}


def small_files(static: Path) -> dict[str, str]:
    """The texts of the scripts and styles of a folder, made small, by their path in it."""
    import minify

    return {
        path.relative_to(static).as_posix(): minify.string(
            MIME[path.suffix], path.read_text("utf-8")
        )
        for path in sorted(static.rglob("*"))
        if path.suffix in MIME
    }


class SmallFiles(BuildHookInterface[Any]):
    folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        try:
            files = small_files(Path(self.root) / "static")
        except ModuleNotFoundError:
            self.app.display_warning("No minifier: scripts and styles stay as they are.")
            return
        self.folder = Path(tempfile.mkdtemp())
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
            build_data["force_include"][str(path)] = f"commentd_static/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder)
