"""Ten words that pages and documents use, each in a sentence or two: docs/glossary.md says the same."""

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "Quad": (
        "A question of two captions and two images, where the first caption belongs to the first image "
        "and the second to the second. BiVLC and Winoground consist of quads."
    ),
    "I2T": (
        "Image to text: an image is given and its caption is to be found. In a quad both images have to "
        "find theirs. Winoground calls it the text score."
    ),
    "T2I": (
        "Text to image: a caption is given and its image is to be found. In a quad both captions have to "
        "find theirs. Winoground calls it the image score."
    ),
    "Group": (
        "The share of quads that are right in both directions, I2T and T2I. Also: some of a benchmark's "
        "questions, such as those in which two objects are swapped."
    ),
    "Gallery": (
        "Many images and many captions, all of which are ranked for each query. A query may have several "
        "right answers."
    ),
    "Hard negative": (
        "A caption or an image that is wrong but close to a right one: one word replaced, two objects "
        "swapped, something added."
    ),
    "Tie": (
        "A right and a wrong answer with the same score. A policy says what it counts for: nothing "
        "(strict), its chance in a random order (half), or as right (optimistic)."
    ),
    "Chance": ("What scores drawn at random get on average."),
    "95 % interval": (
        "A range computed so that it holds the value of an unlimited number of such questions in 95 of "
        "100 benchmarks drawn like this one. It allows for questions that share images or captions."
    ),
    "p (Holm)": (
        "How often chance alone makes two equally good models differ by as much as was found, corrected "
        "(by Holm's method) for how many differences are looked at. Below 0.05 a difference is called "
        "significant."
    ),
}
