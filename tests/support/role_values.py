"""What the rows of a training set hold in a role, row by row."""


def texts(data, role):
    return [data.captions[i].text for i in data.rows[role]]


def pictures(data, role):
    return [data.images[i].read() for i in data.rows[role]]
