"""Words of consent: of a campaign without a text of its own, and about what people are paid.

`phrases/LANGUAGE.json` has the sentences about pay in other languages.
"""

#: The consent; {pay} becomes the sentence below that holds.
USUAL_CONSENT = (
    "Your answers, and how long each took, are stored for research and may be published without anything "
    "that identifies you. You can stop at any time, and withdraw: then your answers are deleted.\n\n{pay}"
)
UNPAID = "This work is not paid."
BY_ITEM = (
    "You are paid {currency} {item} for each item; at {seconds} seconds for each that is {currency} {hour} "
    "per hour."
)
BY_HOUR = "You are paid {currency} {hour} per hour of work, counted at {seconds} seconds for each item."
