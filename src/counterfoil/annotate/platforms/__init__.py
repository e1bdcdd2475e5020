"""Platforms that send people to a campaign: plain links, Prolific, and exchange with others.

base              what a platform tells about who enters, and where people go afterwards
registry          platforms by name, those of other packages among them
links             a link with parameters of any name (a class, SONA, Connect), and Prolific's
prolific          studies and submissions of Prolific; prolific_api sends the requests
mturk_files       results of Mechanical Turk's requester site
"""
