"""Platforms that send people to a campaign: plain links, Prolific, Mechanical Turk, and exchange with others.

base              what a platform tells about who enters, and where people go afterwards
registry          platforms by name, those of other packages among them
link              a link with parameters of any name: a class, SONA, Connect
prolific*         links of Prolific; its API, studies, submissions and bonuses
mturk*            frames of Mechanical Turk's worker site; results of its requester site
label_studio      exported annotations of Label Studio
"""
