"""What a campaign exports, and that the commands which it is for read it; people as a model."""

import csv
import json
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import counterfoil
from annotate.small_campaigns import Worker
from counterfoil import catalog
from counterfoil.annotate import participants, review
from counterfoil.annotate.answers import judgement_table
from counterfoil.annotate.database import open_database
from counterfoil.annotate.export import data_sheet
from counterfoil.annotate.forms.base import AnswerOption, FormField
from counterfoil.annotate.labels import MODELS, item_labels, merged_gains
from counterfoil.benchmarks.folder import load
from counterfoil.benchmarks.judgements import read_judgements, read_votes
from counterfoil.benchmarks.tables import read_table
from counterfoil.build.verification import read_answers, read_choices
from counterfoil.cli import app
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.run import load_run
from counterfoil.jobs.annotate_create import create_campaign
from counterfoil.jobs.annotate_judgements import annotate_agreement, annotate_export
from counterfoil.jobs.build import build_benchmark
from counterfoil.models.base import Options
from refusals import refuses

pytestmark = pytest.mark.usefixtures("few_draws")


def placed(page, values):
    """Answers in terms of values as a page sends them: options by their places."""
    kinds = {
        "one": lambda field, value: field.values.index(value),
        "many": lambda field, value: [field.values.index(one) for one in value],
        "spans": lambda field, value: [{**s, "label": field.values.index(s["label"])} for s in value],
        "text": lambda field, value: value,
    }
    fields = [field for field in page.fields if values.get(field.name) is not None]
    return {field.name: kinds[field.kind](field, values[field.name]) for field in fields}


def answered(campaign, people, answers, url=None):
    """The campaign with the answers of so many people, each until there is nothing left for them."""
    with closing(open_database(campaign, url)) as db:
        for number in range(people):
            worker = Worker(db, campaign, number + 1, now=1.0)
            state = worker.state()
            while state.assignments:
                assignment = state.assignments[0]
                answer = placed(assignment.page, answers(assignment.item, number))
                state = worker.answer(assignment, "yes", answer=answer, seconds=2.0).work
    return campaign


def made(here, form, rows, **options):
    """A campaign of rows, or of a benchmark."""
    source = rows if isinstance(rows, str) else str(here / "items.json")
    if not isinstance(rows, str):
        Path(source).write_text(json.dumps(rows))
        options["images"] = here / "photos"
    options = {"overlap": 3, **options}
    return create_campaign(form, source, here / "campaign", **options, overwrite=True).campaign


def labels_of(campaign):
    """The exported labels by item."""
    return {row["item"]: row for row in rows_of(campaign.folder / "export" / "labels.csv")}


def exported(campaign, name="", **options):
    """The file of that name in an export of the campaign."""
    annotate_export(campaign.folder, **options)
    return campaign.folder / "export" / name


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def run(*words):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.output


PAIRS = [{"id": f"p{i}", "image": f"{i}.png", "caption": f"caption {i}"} for i in range(4)]


def test_choices_of_candidates_are_what_the_step_choose_reads(here):
    rows = [
        {"id": f"{row}#{k}", "of": str(row), "negative_caption": "c", "negative_image": f"{k + row}.png"}
        for row in (0, 1)
        for k in (0, 1, 2)
    ]
    campaign = made(here, "best-of-k", rows)
    # Of row 0 two people choose the third image; of row 1 two say that none fits.
    votes = {"0": ("2", "2", "none"), "1": ("none", "none", "0")}
    answered(campaign, 3, lambda item, n: {"best": votes[item.id][n]})
    assert list(annotate_export(campaign.folder).written) == ["judgements", "labels", "choices"]
    ids, of = ([row[name] for row in rows] for name in ("id", "of"))
    chosen, judged = read_choices(campaign.folder / "export" / "choices.csv", ids, of)
    assert np.flatnonzero(~np.isnan(chosen)).tolist() == [2]
    assert judged.all()
    labels = labels_of(campaign)
    assert (labels["0"]["label"], labels["1"]["label"]) == ("2", "none")
    assert (labels["0"]["votes:2"], labels["1"]["votes:none"]) == ("2", "2")


def test_answers_about_ambiguity_are_what_the_step_filter_reads(here):
    names = [(f"q{i}", f"{i}.png", f"{i + 1}.png") for i in range(3)]
    rows = [{"id": q, "caption": "c", "image": one, "negative_image": other} for q, one, other in names]
    campaign = made(here, "which-image", rows)
    votes = {"q0": ("image",) * 3, "q1": ("image", "both", "negative_image"), "q2": ("both",) * 3}
    answered(campaign, 3, lambda item, n: {"fits": votes[item.id][n]})
    result, stray = read_answers(exported(campaign, "answers.csv"), ["q0", "q1", "q2"])
    votes = [item.sum(axis=0).tolist() for item in (result.yes, result.no)]
    assert (votes, stray) == ([[3, 1, 0], [0, 2, 3]], 0)
    assert result.accepted("majority").tolist() == [True, False, False]


def test_judged_pools_are_what_bias_and_evaluation_read(here):
    proposed = ("i2t", "0.png", "c1", "c1"), ("i2t", "0.png", "c2", "c2"), ("t2i", "c1", "0.png", "c1")
    rows = [
        {"pair": caption[1], "direction": way, "query": query, "item": item, "image": "0.png"}
        | {"caption": caption, "text": f"words of {caption}", "place:clip": 1}
        for way, query, item, caption in proposed
    ]
    campaign = made(here, "match", rows)
    votes = {"1": ("100% YES", "Partially YES", "Partially YES"), "2": ("100% NO", "Mostly NO", "100% NO")}

    def says(item, n):
        word = votes[item.id][n]
        return {"match": word} | ({"shortcomings": ["lacking"]} if word[0] in "PM" else {})

    answered(campaign, 3, says)
    merged = read_judgements(exported(campaign, "gains.csv"))
    assert (merged.rows, merged.pairs, merged.several) == (3, 2, 0)
    gains = {item.direction: item.gain.tolist() for item in merged.directions}
    assert gains == {"i2t": [0.5, 0.0], "t2i": [0.5]}
    assert "clip" in merged.directions[0].place
    for partly, gain in (("full", 1.0), ("none", 0.0)):
        merged = read_judgements(exported(campaign, "gains.csv", partly=partly, overwrite=True))
        assert merged.directions[0].gain.tolist() == [gain, 0.0]


def test_votes_between_rankings_are_what_preferences_reads(here):
    pairs = [("A", "B"), ("B", "C"), ("A", "C"), ("C", "A")]
    shown = {"first_images": ["0.png", "1.png"], "second_images": ["2.png"]}
    rows = [{"id": str(i), "first": a, "second": b, **shown} for i, (a, b) in enumerate(pairs)]
    campaign = made(here, "preference", rows, settings={"same": True})

    def says(item, n):
        """The first of the alphabet, or by the second person the other one; the third has no preference."""
        return {"better": [*sorted(("first", "second"), key=item.cells.__getitem__), "same"][n]}

    answered(campaign, 3, says)
    votes = read_votes(exported(campaign, "votes.csv"))
    assert (votes.names, votes.wins.tolist()) == (("A", "B", "C"), [[0, 1, 2], [1, 0, 1], [2, 1, 0]])


def test_ratings_are_a_benchmark_of_ones_own(here):
    campaign = made(here, "rating", PAIRS)
    answered(campaign, 3, lambda item, n: {"rating": str(1 + (int(item.id[1]) + n) % 4)})
    annotate_export(campaign.folder)
    data, images = campaign.folder / "export" / "ratings.csv", campaign.folder / "images"
    benchmark = catalog.benchmark("ratings", data=data, images=images)
    result = dict(zip(benchmark.questions.ids, np.sort(benchmark.rated.ratings).tolist(), strict=True))
    assert result == {"p0": [1, 2, 3], "p1": [2, 3, 4], "p2": [1, 3, 4], "p3": [1, 2, 4]}
    assert benchmark.images_at_hand


def write_quads(item, n):
    captions = {"first_caption": f"a cat{n} bites a dog{n}", "second_caption": f"a dog{n} bites a cat{n}"}
    more = {"swap": "object", "predicates": "1", "visual": ["symbolic"]}
    return {"first_image": "0", "second_image": "1", **captions, **more}


def test_authored_quads_are_a_benchmark_and_are_validated_by_others(here):
    rows = [{"id": "t", "images": ["0.png", "1.png", "2.png"], "topic": "pets"}]
    campaign = answered(made(here, "quad-authoring", rows, overlap=2), 2, write_quads)
    assert list(annotate_export(campaign.folder).written) == ["judgements", "rows"]
    data, images = campaign.folder / "export" / "rows.csv", campaign.folder / "images"
    benchmark = catalog.benchmark("pairs", data=data, images=images)
    assert (benchmark.card.form, len(benchmark), benchmark.images_at_hand) == ("quad", 2, True)
    built = build_benchmark("winoground", here / "built", source=str(data), images=images, report=False)
    assert [record.step for record in built.build.records] == ["read", "format", "assemble"]
    assert (len(load(here / "built")), load(here / "built").card.form) == (2, "quad")
    validation = create_campaign("quad-validation", campaign.folder, here / "second", overlap=1).campaign
    assert validation.secrets["salt"] == campaign.secrets["salt"]
    assert validation.secrets["token"] != campaign.secrets["token"]
    authors = {row["author"] for row in rows_of(data)}
    assert {item.cells["author"] for item in validation.items} == authors
    assert len(authors) == 2
    right = {"first_image": "first", "second_image": "second"}
    answered(validation, 2, lambda item, n: right if item.id.endswith("0") else dict.fromkeys(right, "equal"))
    annotate_export(validation.folder)
    result, _ = read_answers(validation.folder / "export" / "answers.csv", [i.id for i in validation.items])
    assert result.accepted("majority").tolist() == [item.id.endswith("0") for item in validation.items]
    with pytest.raises(InputError, match="only authored quads"):
        create_campaign("yes-no", campaign.folder, here / "third")


def test_error_spans_say_which_words(here):
    campaign = made(here, "error-spans", PAIRS)
    wrong = {"verdict": "wrong", "errors": [{"start": 0, "end": 7, "label": "object"}]}
    answered(campaign, 3, lambda item, n: {"verdict": "right"} if item.id == "p0" else wrong)
    names = ("item", "text", "label", "start", "end")
    spans = Counter(tuple(row[name] for name in names) for row in rows_of(exported(campaign, "spans.csv")))
    assert spans == {(item, "caption", "object", "0", "7"): 3 for item in ("p1", "p2", "p3")}


def test_people_can_be_left_out_altogether(here):
    campaign = answered(made(here, "yes-no", PAIRS), 3, lambda item, n: {"match": "yes"})
    persons = {row["person"] for row in rows_of(exported(campaign, "judgements.csv"))}
    assert len(persons) == 3
    assert not persons & {*participants.make_links(campaign, 3)}
    run("annotate", "export", "campaign", "--out", "without", "--no-person-ids", "--format", "parquet")
    sheet = (here / "without" / "data_sheet.md").read_text()
    with closing(open_database(campaign)) as db:
        assert sheet == "".join(f"* {line}\n" for line in data_sheet(campaign, judgement_table(db, campaign)))
    for path in (here / "without").iterdir():
        content = path.read_bytes()
        assert not any(person.encode() in content for person in persons)
        assert campaign.secrets["salt"].encode() not in content
    assert pq.read_table(here / "without" / "judgements.parquet").num_rows == 12


def test_export_says_what_is_wrong(here):
    campaign = made(here, "yes-no", PAIRS)
    for read in (lambda: annotate_export(campaign.folder), lambda: catalog.model("people:campaign")):
        refuses("no answers yet", read, error=InputError)
    answered(campaign, 3, lambda item, n: {"match": "yes"})
    with pytest.raises(UnknownNameError, match="did you mean 'majority'"):
        annotate_export(campaign.folder, model="majorty")
    (here / "mine").mkdir()
    (here / "mine" / "labels.csv").write_text("mine")
    refuses("the folder holds files", annotate_export, campaign.folder, here / "mine", error=InputError)
    assert (here / "mine" / "labels.csv").read_text() == "mine"
    annotate_export(campaign.folder)
    annotate_export(campaign.folder, overwrite=True)


def judged_rows(votes):
    """A table of judgements: each letter of an item's text is the answer of a person of its own."""
    answers = {"y": "yes", "n": "no"}
    given = [(item, n, letter) for item, text in votes.items() for n, letter in enumerate(text)]
    rows = [{"item": i, "person": f"p{n}", "question": "q", "answer": answers[said]} for i, n, said in given]
    return pa.Table.from_pylist(rows)


QUESTION = FormField("q", "?", options=(AnswerOption("yes"), AnswerOption("no")))


@pytest.mark.parametrize("model", MODELS)
def test_labels_of_every_model_have_a_posterior(model):
    votes = {"a": "yyyy", "b": "nnnn", "c": "yyyn", "d": "nnny", "e": "yyyn", "f": "nnny"}
    result = item_labels(judged_rows(votes), QUESTION, model=model)
    assert (result.items, result.labels) == (tuple(votes), ("yes", "no") * 3)
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1)
    assert result.votes.tolist() == [[text.count("y"), text.count("n")] for text in votes.values()]
    assert result.table.column_names[-2:] == ["posterior:yes", "posterior:no"]
    # Of one answer each nothing tells how good people are: one coin would turn most of these answers around.
    single = item_labels(judged_rows(dict.fromkeys("abcde", "n") | {"f": "y"}), QUESTION, model=model)
    assert (single.labels, single.model) == (("no",) * 5 + ("yes",), "majority")


def test_a_decision_takes_the_place_of_the_model_and_a_tie_has_no_label():
    table = judged_rows({"a": "yn", "b": "yy"})
    plain = item_labels(table, QUESTION, model="majority")
    assert plain.labels == ("", "yes")
    decided = item_labels(table, QUESTION, model="majority", adjudicated={("a", "q"): "no"})
    assert (decided.labels, decided.decided.tolist()) == (("no", "yes"), [True, False])
    assert decided.posterior[0].tolist() == [0.0, 1.0]
    assert plain.table.column("label").to_pylist() == [None, "yes"]


def test_gains_are_of_the_four_answers_alone():
    scale = FormField("q", "?", options=(AnswerOption("yes"), AnswerOption("no"), AnswerOption("3")))
    ratings = item_labels(judged_rows({"a": "yy"}), scale)
    refuses("a label without a gain; given: 3", merged_gains, ratings, error=InputError)
    assert merged_gains(item_labels(judged_rows({"a": "yy"}), QUESTION)).tolist() == [1.0]


def test_decisions_of_a_researcher_are_in_the_export(here):
    campaign = made(here, "yes-no", PAIRS, overlap=2)
    answered(campaign, 2, lambda item, n: {"match": ("yes", "no")[n]})
    with closing(open_database(campaign)) as db:
        review.adjudicate(db, campaign, "p1", "no", by="me", now=5.0)
    assert annotate_export(campaign.folder, model="majority").tied == 3
    labels = labels_of(campaign)
    assert (labels["p1"]["label"], labels["p1"]["decided"]) == ("no", "true")
    assert labels["p0"]["label"] == ""


def test_people_answer_quads_by_single_directions(here, capsys):
    """BiVLC's human row: group is right where all four queries are, I2T where its two are."""
    campaign = made(here, "choose", "world-quads", sample=10, overlap=1)
    names = sorted({item.instance for item in campaign.items})
    wrong = {f"{names[0]}_i2t-0", f"{names[1]}_t2i-1", f"{names[2]}_t2i-0", f"{names[2]}_t2i-1"}
    answered(campaign, 4, lambda item, n: {"best": str(int(item.truth) ^ (item.id in wrong))})
    result = counterfoil.evaluate("people:campaign", "world-quads", draws=100)
    assert [result.result[name].value for name in ("i2t", "t2i", "group")] == pytest.approx([0.9, 0.8, 0.7])
    assert "world-quads: 10 of 500 questions are answered in full" in capsys.readouterr().err
    annotate_export(campaign.folder, people=False)
    assert sorted(read_table(campaign.folder / "export" / "outcomes.csv")["id"]) == names
    assert catalog.model("people:campaign").described == "40 answers of 4 people (choose)"
    with pytest.raises(InputError, match=r"people:campaign/export/judgements\.csv with --set campaign=DIR"):
        catalog.model("people:campaign/export")


def asked_twice(here, **more):
    """Twelve choices with the right caption first; one person is right, another one in half of them."""
    rows = [{"id": f"q{i}", "images": "0.png", "captions": ["a", "b"], **more} for i in range(12)]
    campaign = made(here, "choose", rows, overlap=2)
    return answered(campaign, 2, lambda item, n: {"best": "1" if n and int(item.id[1:]) % 2 else "0"})


def test_several_answers_to_a_query_count_as_their_mean(here):
    campaign = asked_twice(here, truth="0")
    share = [1.0, 0.5] * 6
    ties = "each item scores the mean of its answers; people are evenly divided on 6 of 12 (50.0 %)"
    annotate_export(campaign.folder)
    result = catalog.model("people:campaign")
    values = dict(zip(result.ids, result.right["accuracy"].tolist(), strict=True))
    assert values == {f"q{i}": value for i, value in enumerate(share)}
    assert result.described == f"24 answers of 2 people (choose); {ties}"
    # The exported table is one that `given:` takes, and labels by a model count a tie by its chances.
    given = catalog.model("given:campaign/export/outcomes.csv")
    assert sorted(given.right["accuracy"].tolist()) == sorted(share)
    labelled = catalog.model("people:campaign", Options(settings={"model": "majority"}))
    assert labelled.right["accuracy"].mean() == pytest.approx(0.75)


def test_a_quad_is_right_as_often_as_one_answer_to_each_query_is(here):
    campaign = made(here, "choose", "world-quads", sample=10, overlap=2)
    name = min(item.instance for item in campaign.items)
    seen = Counter()

    def answer(item, n):
        seen[item.id] += 1
        return {"best": str(int(item.truth) ^ (item.instance == name and seen[item.id] == 2))}

    answered(campaign, 10, answer)
    result = counterfoil.evaluate("people:campaign", "world-quads", draws=100, out=here / "run")
    # Of one question each query is a tie: two of them both right in a quarter of cases, four in a sixteenth.
    values = [result.result[name].value for name in ("ipos2t", "i2t", "group")]
    assert values == pytest.approx([0.95, 0.9 + 0.1 / 4, 0.9 + 0.1 / 16])
    assert catalog.model("people:campaign").described.endswith("evenly divided on 4 of 40 (10.0 %)")
    stored = load_run(here / "run" / "world-quads")
    assert stored.result["group"] == result.result["group"]
    assert set(stored.answers.outcomes.right["ipos2t"].tolist()) == {0.5, 1.0}


def test_judgements_without_a_known_truth_are_exported(here):
    result = annotate_export(asked_twice(here).folder)
    assert {"judgements", "labels", "outcomes"} & set(result.written) == {"judgements", "labels"}
    # In its campaign's folder a table is read with the campaign's options, elsewhere without.
    shutil.copy(inside := result.written["judgements"][0], outside := here / "judgements.csv")
    of = [annotate_agreement(path, draws=100).to_arrow() for path in (result.folder.parent, inside, outside)]
    assert of[0]["alpha"].equals(of[1]["alpha"])
    assert not of[0]["alpha"].equals(of[2]["alpha"])
    assert any("12 items have no known right answer" in line for line in result.notes)
    refuses("'truth'", catalog.model, "people:campaign", error=InputError)
    created = create_campaign("choose", "items.json", here / "again", images=here / "photos")
    assert any("12 of 12 items have no known right answer" in line for line in created.notes)


def test_the_share_of_yes_is_a_score_of_every_pair(here):
    """Winoground section 4.3: the ratio of people who say that the pair matches."""
    campaign = made(here, "yes-no", "world-quads", sample=4, overlap=2)

    # Everybody is right, but one of two people says yes to one wrong pair of the first question.
    name = min(item.instance for item in campaign.items)
    votes = iter(("yes", "no"))
    odd = f"{name}_c0_i1"
    answered(campaign, 8, lambda item, n: {"match": next(votes) if item.id == odd else item.truth})
    model = catalog.model("people:campaign")
    assert model.values[list(model.ids).index(name)].tolist() == [[1.0, 0.5], [0.0, 1.0]]
    result = counterfoil.evaluate("people:campaign", "world-quads", draws=100)
    assert (result.result["group"].value, result.result["group"].n) == (1.0, 4)
    annotate_export(campaign.folder, here / "kept", kind="parquet")
    other = catalog.model("people:kept/judgements.parquet", Options(settings={"campaign": "campaign"}))
    values = [dict(zip(of.ids, of.values.tolist(), strict=True)) for of in (other, model)]
    assert values[0] == values[1]
    assert other.described == model.described
    with pytest.raises(InputError, match="name the campaign with --set campaign=DIR"):
        catalog.model("people:kept/judgements.parquet")
    with pytest.raises(InputError, match="unknown key; given: database"):
        catalog.model("people:kept/judgements.parquet", Options(settings={"database": "sqlite:///x"}))


def test_people_are_read_from_the_database_that_is_named(here, new_database):
    campaign = made(here, "yes-no", "world-quads", sample=2, overlap=1)
    url = new_database() or f"sqlite:///{here / 'elsewhere.sqlite'}"
    answered(campaign, 4, lambda item, n: {"match": item.truth}, url)
    refuses("no answers yet", catalog.model, "people:campaign", error=InputError)
    result = catalog.model("people:campaign", Options(settings={"database": url}))
    assert result.described == "8 answers of 4 people (yes-no)"


def test_one_person_completes_no_question_of_several_pairs(here):
    created = create_campaign("yes-no", "world-choices", here / "campaign", sample=5, overlap=1)
    assert any("at most 5 of the 10 items" in line and "2 people or more" in line for line in created.notes)
    answered(created.campaign, 1, lambda item, n: {"match": item.truth})
    whole = r"people:campaign: no question is complete yet; .* to 1 of the pairs .*; let more people answer"
    for unanswered in ("refuse", "leave-out"):
        refuses(whole, catalog.model, "people:campaign", Options(unanswered=unanswered), error=InputError)


def test_ratings_and_matches_score_benchmarks_too(here):
    campaign = made(here, "rating", "world-rated", sample=12, overlap=2)
    benchmark = catalog.benchmark("world-rated")
    quarters = np.argsort(np.argsort(np.nanmean(benchmark.rated.ratings, axis=1))) * 4 // len(benchmark)
    grade = dict(zip(benchmark.questions.ids, map(str, 1 + quarters), strict=True))
    answered(campaign, 2, lambda item, n: {"rating": grade[item.id]})
    result = counterfoil.evaluate("people:campaign", "world-rated", draws=100)
    assert result.result["kendall_tau_b"].value > 0.5
    (here / "one.json").write_text('[{"caption": "c", "image": "0.png", "negative_image": "1.png"}]')
    create_campaign("which-image", here / "one.json", here / "other", images=here / "photos")
    refuses("score no questions", catalog.model, "people:other", error=InputError)
