"""What the rows of a training set hold in a role, row by row."""


def texts(data, role):
    """The caption of each row."""
    return [data.captions[i].text for i in data.rows[role]]


def pictures(data, role):
    """The bytes of each row's image."""
    return [data.images[i].read() for i in data.rows[role]]
