"""What the package's page on an index needs: links that lead out of the README, and the project's address.

The address is not written down anywhere: whoever builds a release says it in GBDGC_REPOSITORY, as the workflow does.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


def absolute_links(text: str, repository: str, tag: str) -> str:
    """Return Markdown whose links lead to a tag of the repository; pictures are linked as files, not as pages."""

    def replace(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/{tag}/{target})"

    return LINK.sub(replace, text)


class CustomMetadataHook(MetadataHookInterface):
    """Fill in the README and the addresses when the package is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and `urls`; without an address the README stays as it is."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {}
        if repository := os.environ.get("GBDGC_REPOSITORY", "").rstrip("/"):
            tag = f"v{metadata['version']}"
            text = absolute_links(text, repository, tag)
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/blob/{tag}/docs",
                "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
