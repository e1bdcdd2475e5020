"""Flickr8k's captions and what its experts said of some, from the files as they were released."""


def captions(shared_data):
    """The five captions of each image, by file name."""
    found = {}
    for line in (shared_data / "flickr8k" / "Flickr8k.token.txt").read_text("utf-8").splitlines():
        key, text = line.split("\t", 1)
        found.setdefault(key.split("#")[0], []).append(" ".join(text.split()))
    return found


def expert(shared_data):
    """(image, candidate, rating) of every rating, candidates of the image's own captions left out."""
    known = captions(shared_data)
    rows = []
    for line in (shared_data / "flickr8k" / "ExpertAnnotations.txt").read_text("utf-8").splitlines():
        image, caption, *ratings = line.split()
        source, number = caption.split("#")
        text = known[source][int(number)]
        if text not in known[image]:
            rows += [(image, text, float(rating)) for rating in ratings]
    return rows
