"""Small files in the exact layouts that benchmarks are released in, with the pairs that are right."""

import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import PIL.Image

from counterfoil.benchmarks.readers.specs import layouts
from faults.files import write_csv


@dataclass
class Released:
    """A folder with a release: the ids its questions should have, and its right (caption, image) pairs."""

    folder: Path
    ids: list[str] = field(default_factory=list)
    right: set[tuple[str, str]] = field(default_factory=set)
    #: The benchmark's counts in miniature, by group.
    counts: dict[str, int] = field(default_factory=dict)

    def json(self, name, value):
        self.text(name, json.dumps(value))

    def text(self, name, value):
        self._path(name).write_text(value)

    def _path(self, name):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def csv(self, name, rows, *, delimiter=","):
        write_csv(self._path(name), rows, delimiter=delimiter)

    def picture(self, name, seed, size=(24, 16)):
        path = self._path(name)
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        if path.suffix == ".npy":
            np.save(path, pixels)
        else:
            PIL.Image.fromarray(pixels).save(path)
        return name

    def question(self, name, *pairs, groups=()):
        """A question of that id whose right pairs these are, in these groups."""
        self.ids.append(name)
        self.right.update(pairs)
        for group in groups:
            self.counts[group] = self.counts.get(group, 0) + 1

    def quad(self, q, images, *, name="", at="", groups=()):
        """Captions of question q; pictures of these names are written below `at`, and the pairs are right."""
        captions = [f"caption {k} of {q}" for k in (0, 1)]
        for k, image in enumerate(images):
            self.picture(at + image, 2 * q + k)
        self.question(name or str(q), *zip(captions, images, strict=True), groups=groups)
        return captions


def colorswap(into):
    rows = []
    for q in range(3):
        images = (f"images/img_{q}_1.png", f"images/img_{q}_2.png")
        sources = {"image_source": "midjourney", "caption_source": "human" if q else "template"}
        first, second = into.quad(q, images, groups=sources.values())
        rows.append({"id": q, "caption_1": first, "caption_2": second})
        rows[-1] |= {"image_1": images[0], "image_2": images[1], **sources}
    into.json("test.json", rows)
    into.json("train.json", rows[:1])


def vismin(into):
    for q, category in enumerate(("object", "attribute", "counting", "relation")):
        images = (f"{category}/{q}.png", f"{category}/{q}_edited.png")
        first, second = into.quad(q, images, name=f"{category}/e{q}", groups=[category])
        row = {"image_path": images[0], "caption": first, "edited_image_path": images[1]}
        into.csv(f"{category}.csv", [{**row, "edited_caption": second, "edit_id": f"e{q}"}])


def naturalbench(into):
    rows = []
    for q in range(3):
        images = (f"images/{q}_0.jpg", f"images/{q}_1.jpg")
        first, second = into.quad(q, images, name=str(q + 5))
        rows.append({"index": q + 5, "image_0": images[0], "image_1": images[1]})
        rows[-1] |= {"caption_0": first, "caption_1": second}
    into.json("metadata.json", rows)


def cola(into):
    rows = []
    for q in range(3):
        images = (f"{q}1.jpg", f"{q}2.jpg")
        first, second = into.quad(q, images, at="images/")
        address = "https://cs-people.bu.edu/array/data/vg_gqa_images/"
        rows.append([address + images[0], first, address + images[1], second])
    into.json("COLA_multiobjects_matching_benchmark.json", rows)


def mmvp(into):
    rows = []
    for q, kind in enumerate(("Texts", "Texts", "Quantity and Count")):
        numbers = (2 * q + 1, 2 * q + 2)
        images = [f"MLLM_VLM Images/{kind}/{n}.jpg" for n in numbers]
        captions = into.quad(q, images, name=f"{numbers[0]}-{numbers[1]}", groups=[kind])
        rows += [
            {"Question ID": n, "Type": kind, "Statement": text}
            for n, text in zip(numbers, captions, strict=True)
        ]
    into.csv("Questions.csv", rows)


def counterfactuals(into):
    rows = []
    for q in range(3):
        images = (f"{q}.jpg", f"neg_{q}.jpg")
        first, second = into.quad(q, images)
        rows.append({"captions": first, "images": images[0], "neg_captions": second, "neg_images": images[1]})
    into.csv("attribute.csv", rows, delimiter="\t")


EQBEN = ("eqbenag/a/f1.png", "eqbenyoucook2/b/1.npy", "eqbenkubric_loc/1.png", "eqbensd/1.png")


def _eqben_rows(into):
    rows = []
    for q, name in enumerate(EQBEN):
        images = (name, name.replace("1.", "2."))
        first, second = into.quad(q, images, groups=[name.split("/")[0]])
        rows.append({"image0": images[0], "caption0": first, "image1": images[1], "caption1": second})
    return rows


def eqben_list(name, into):
    into.json(name, _eqben_rows(into))
    into.counts.clear()


def valse(least, into):
    """One item of each of its eleven files that passes the filter, and two that do not; keys repeat."""
    for n, name in enumerate(layouts("valse")[0].subsets):
        items = {}
        for votes in (least, least - 1, 0):
            items[f"test_{least - votes}"] = {
                "image_file": into.picture(f"{n}_{votes}.jpg", 10 * n + votes),
                "caption": f"caption {n} {votes}",
                "foil": f"foil {n} {votes}",
                "linguistic_phenomena": "of the data",
                "mturk": {"foil": 3 - votes, "caption": votes, "other": 0},
            }
        into.json(f"{name}.json", items)
        into.question(f"{name}/test_0", (f"caption {n} {least}", f"{n}_{least}.jpg"), groups=[name])


def whatsup(name, relations, into):
    """Two sets of four; of the second pair of objects all, so that every image has its opposite."""
    rows = []
    for n, objects in enumerate((("mug", "table"), ("pan", "chair"))):
        for k, relation in enumerate(relations):
            of = "_of" if relation in ("left", "right", "in-front") else ""
            stem = f"{objects[0]}_{relation}{of}_{objects[1]}"
            image = into.picture(f"images/{stem}.jpeg", 4 * n + k)
            texts = [f"A {objects[0]} {item} {objects[1]}" for item in relations]
            texts = [texts[k], *texts[:k], *texts[k + 1 :]]
            rows.append({"image_path": f"data/{image}", "caption_options": texts})
            into.question(stem, (texts[0], f"data/{image}"), groups=[relation])
    into.json(name, rows)


def spatial_questions(name, image, into, *, two):
    rows = []
    for n, (right, wrong) in enumerate((("left", "right"), ("top", "bottom"))):
        file = image.format(139 + n)
        into.picture(f"images/{file}", n)
        end = " of a dog" if two else ""
        rows.append([139 + n, f"A cat on the {right}{end}", f"A cat on the {wrong}{end}"])
        group = f"{right} of" if two and right == "left" else right
        into.question(str(n), (rows[-1][1], file), groups=[group])
    into.json(name, rows)


def negbench(into):
    for n, name in enumerate(("COCO_val", "VOC2007")):
        rows = []
        for row, (right, template) in enumerate(((0, "positive"), (3, "negative"), (1, "hybrid"))):
            image = into.picture(f"images/{name}_{row}.jpg", 3 * n + row)
            options = {f"caption_{k}": f"caption {k} of {name} {row}" for k in range(4)}
            rows.append({"image_path": f"data/coco/{image}", **options, "correct_answer": right})
            rows[-1]["correct_answer_template"] = template
            pair = options[f"caption_{right}"], f"data/coco/{image}"
            into.question(f"{name}/{row}", pair, groups=[name, template])
        into.csv(f"{name}_mcq_llama3.1_rephrased.csv", rows)


def vl_checklist(into):
    files = {
        "Attribute/vg/color": "Attribute/color",
        "Object/Location/swig_location/swig_agent/swig_agent_mid": "Object/Location/mid",
        "Object/Location/swig_location/swig_item/swig_item_mid": "Object/Location/mid",
        "Object/Location/vg_location/vg_obj_mid": "Object/Location/mid",
        "Object/Size/hake_size/hake_obj_small": "Object/Size/small",
        "Relation/swig_action": "Relation/action",
    }
    for n, (name, kind) in enumerate(files.items()):
        rows = []
        for row in range(2 + n % 2):
            image = into.picture(f"images/{n}/{row}.jpg", 3 * n + row)
            texts = {"POS": [f"right {n} {row}", "another"], "NEG": [f"wrong {n} {row}", "another"]}
            rows.append([f"VG_100K/{image}", texts])
            pair = f"right {n} {row}", f"VG_100K/{image}"
            into.question(f"{name}/{row}", pair, groups=[name, kind, kind.split("/")[0]])
        into.json(f"{name}.json", rows)
    into.json("Object/Size/swig_size/swig_place_large.json", [])


def spec(into, *, texts):
    """Two subsets, of four and of three options; the right one is not always the first."""
    for n, subset in enumerate(("relative_size", "existence")):
        rows = []
        for row in range(3):
            images = [f"images/{row}_{k}.jpg" for k in range(1 if texts else 4 - n)]
            for k, image in enumerate(images):
                into.picture(f"{subset}/{image}", 12 * n + 4 * row + k)
            keys = [f"{subset} {row} {k}" for k in range(4 - n)]
            query = {"query": images[0], "keys": keys} if texts else {"query": keys[0], "keys": images}
            rows.append({**query, "label": row})
            caption, image = (keys[row], images[0]) if texts else (keys[0], images[row])
            into.question(f"{subset}/{row}", (caption, f"{subset}/{image}"), groups=[subset])
        into.json(f"{subset}/{'image2text' if texts else 'text2image'}.json", rows)


def crepe(into):
    for n, (kind, complexity) in enumerate((("atom", 4), ("negate", 12), ("swap", 5))):
        rows = []
        for row in range(2):
            number = 10 * n + row
            into.picture(f"VG_100K{'_2' if row else ''}/{number}.jpg", number, (40, 30))
            wrong = [f"it's wrong {number} {k}" for k in range(5)]
            rows.append({"image_id": number, "caption": f"right {number}"})
            rows[-1] |= {"x": 4, "y": 2, "width": 20, "height": 10 + row, "hard_negs": str(wrong)}
            groups = f"{kind}_{complexity}", kind, f"complexity {complexity}"
            pair = f"right {number}", f"{number}.jpg#4,2,24,{12 + row}"
            into.question(f"{kind}_{complexity}/{row}", pair, groups=groups)
        into.csv(f"{kind}/prod_vg_hard_negs_{kind}_complexity_{complexity}.csv", rows)


def crepe_systematicity(into, *, of):
    """Both splits, with one to six negatives of a type; a caption has none. Other sets' files lie beside."""
    for n, split in enumerate(("seen_compounds", "unseen_compounds")):
        rows = []
        for row in range(3):
            number = 10 * n + row
            into.picture(f"VG_100K{'_2' if row else ''}/{number}.jpg", number, (40, 30))
            rows.append({"region_id": 7 * number, "caption": f"right {number}"})
            rows[-1] |= {"x": 4, "y": 2, "width": 20, "height": 10 + row}
            for k, kind in enumerate(("comp", "atom")):
                wrong = [f"wrong {kind} {number} {i}" for i in range(2 * row + k + n)]
                rows[-1][f"valid_hard_negs_{kind}"] = str(wrong)
            rows[-1] |= {"image_id": number, "valid_hard_negs_combined": "[]"}
        for kind in ("atom", "comp"):
            for row, item in enumerate(rows):
                if item[f"valid_hard_negs_{kind}"] != "[]":
                    groups = f"{split}_{kind}", split.replace("_", " "), kind
                    into.question(f"{split}_{kind}/{row}", groups=groups)
        into.right |= {(f"right {10 * n + row}", f"{10 * n + row}.jpg#4,2,24,{12 + row}") for row in range(3)}
        for other in ("cc12m", "yfcc", "laion"):
            result = rows if other == of else [{**item, "caption": f"of {other}"} for item in rows]
            into.csv(f"syst_hard_negatives/syst_vg_hard_negs_{split}_in_{other}.csv", result)


def svo_probes(into):
    rows = []
    for n, kind in enumerate(("subj_neg", "verb_neg", "obj_neg", "verb_neg")):
        images = [into.picture(f"{10 * n + k}.jpg", 2 * n + k) for k in (0, 1)]
        row = {"sentence": f"A person sits {n}", "pos_triplet": "person,sit,x", "neg_triplet": "person,run,x"}
        row |= {"pos_url": "http://a", "neg_url": "http://b"}
        row |= {"pos_image_id": 10 * n, "neg_image_id": 10 * n + 1}
        rows.append(row | {item: item == kind for item in ("subj_neg", "verb_neg", "obj_neg")})
        group = {"subj_neg": "subject", "verb_neg": "verb", "obj_neg": "object"}[kind]
        into.question(str(n), (row["sentence"], images[0]), groups=[group])
    into.csv("svo_probes.csv", [*rows, rows[0] | {"sentence": ""}])


#: By the name of the benchmark.
LAYOUTS = {
    "colorswap": colorswap,
    "vismin": vismin,
    "naturalbench-retrieval": naturalbench,
    "cola": cola,
    "mmvp-vlm": mmvp,
    "eqben": lambda into: into.json("private_info_global.json", _eqben_rows(into)),
    "eqben-subset": partial(eqben_list, "eqben_subset_10percent_final.json"),
    "eqben-mini": partial(eqben_list, "all_select.json"),
    "countercurate": counterfactuals,
    "valse": partial(valse, 2),
    "valse-unanimous": partial(valse, 3),
    "whatsup-a": partial(whatsup, "controlled_images_dataset.json", ("left", "right", "on", "under")),
    "whatsup-b": partial(whatsup, "controlled_clevr_dataset.json", ("left", "right", "in-front", "behind")),
    "whatsup-coco-one": partial(spatial_questions, "coco_qa_one_obj.json", "{:012d}.jpg", two=False),
    "whatsup-coco-two": partial(spatial_questions, "coco_qa_two_obj.json", "{:012d}.jpg", two=True),
    "whatsup-vg-one": partial(spatial_questions, "vg_qa_one_obj.json", "{}.jpg", two=False),
    "whatsup-vg-two": partial(spatial_questions, "vg_qa_two_obj.json", "{}.jpg", two=True),
    "negbench-mcq": negbench,
    "vl-checklist": vl_checklist,
    "vl-checklist-all": vl_checklist,
    "spec-i2t": partial(spec, texts=True),
    "spec-t2i": partial(spec, texts=False),
    "crepe-productivity": crepe,
    **{f"crepe-systematicity-{of}": partial(crepe_systematicity, of=of) for of in ("cc12m", "yfcc", "laion")},
    "svo-probes": svo_probes,
}
