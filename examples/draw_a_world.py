"""Draw a small world and look at it: a contact sheet of contrasts, and the benchmark as a folder.

    python examples/draw_a_world.py world-sheet

Every question is two captions and two pictures that differ by one edit. Because the world is known, the
exact checker can say which caption is true of which picture, and here it does.
"""

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from counterfoil.benchmarks.folder import save
from counterfoil.world import SUBSETS, MinimalPair, contrasts, draw, matches, quads, text

SIDE, GAP, LINE = 192, 12, 17


def contact_sheet(made: list[MinimalPair], columns: int = 2) -> Image.Image:
    """Both pictures of each contrast side by side, with both captions below."""
    font = ImageFont.load_default(12)
    longest = max(font.getlength(f"A  {text(caption)}") for contrast in made for caption in contrast.captions)
    width, height = max(2 * SIDE + GAP, round(longest)) + 2 * GAP, SIDE + 3 * LINE + 2 * GAP
    sheet = Image.new("RGB", (columns * width + GAP, -(-len(made) // columns) * height + GAP), "white")
    pen = ImageDraw.Draw(sheet)
    for i, contrast in enumerate(made):
        left, top = GAP + i % columns * width, GAP + i // columns * height
        for j, (caption, scene) in enumerate(zip(contrast.captions, contrast.scenes, strict=True)):
            sheet.paste(draw(scene, SIDE), (left + j * (SIDE + GAP), top))
            pen.text((left, top + SIDE + 4 + j * LINE), f"{'AB'[j]}  {text(caption)}", "#222222", font)
        pen.text((left, top + SIDE + 4 + 2 * LINE), contrast.subset, "#888888", font)
    return sheet


def main(folder: Path) -> None:
    """Write FOLDER/contact-sheet.png and FOLDER/benchmark/."""
    made = sorted(contrasts(2 * len(SUBSETS), seed=1), key=lambda contrast: SUBSETS.index(contrast.subset))
    for contrast in made[::2]:
        truth = [[matches(caption, scene) for scene in contrast.scenes] for caption in contrast.captions]
        print(f"{contrast.subset:12} {text(contrast.captions[0])}\n{'':12} {text(contrast.captions[1])}")
        print(f"{'':12} caption by picture: {truth}")

    folder.mkdir(parents=True, exist_ok=True)
    contact_sheet(made).save(folder / "contact-sheet.png")
    save(quads(70, seed=1), folder / "benchmark")
    print(f"wrote {folder / 'contact-sheet.png'} and {folder / 'benchmark'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("world-sheet"))
