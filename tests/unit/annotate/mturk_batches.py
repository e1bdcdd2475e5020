"""Results of Mechanical Turk's requester site, as it exports them."""

import csv

#: Columns of a batch that say nothing here, as the site writes them.
FACTS = {
    "HITTypeId": "3TYPE",
    "Title": "Do captions match?",
    "Reward": "$1.40",
    "RequesterAnnotation": "BatchId:1;OriginalHitTemplateId:2;",
    "AcceptTime": "Mon Aug 23 10:00:00 PDT 2021",
    "LifetimeApprovalRate": "100% (5/5)",
}
#: ECCV Caption's HITs hold 20 pairs (section 3.2).
PAIRS = 20


def hit(number, worker, **more):
    """One assignment: pair k of HIT h is image h-k with caption h-k; the last two pairs are golden."""
    row = {
        "HITId": f"3HIT{number}",
        **FACTS,
        "AssignmentId": f"3A{number}{worker}",
        "WorkerId": worker,
        "AssignmentStatus": "Submitted",
        "WorkTimeInSeconds": "570",
    }
    for k in range(1, PAIRS + 1):
        row[f"Input.image{k}"], row[f"Input.caption{k}"] = f"i{number}-{k}", f"c{number}-{k}"
        row[f"Input.golden{k}"] = {19: "100% YES|Partially YES, but", 20: "100% NO"}.get(k, "")
        row[f"Answer.match{k}"] = ("100% YES", "Partially YES, but", "Mostly NO, because", "100% NO")[k % 4]
        row[f"Answer.why{k}"] = "colour|quantity" if k % 4 == 1 else ""
    return {**row, "Approve": "", "Reject": "", **more}


def written(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    return path
