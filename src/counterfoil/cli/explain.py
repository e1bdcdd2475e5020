"""`counterfoil explain`: which words of a caption count for a score, and where in the picture."""

from typing import Annotated, Literal

import typer

from counterfoil.cli import options, usage
from counterfoil.cli.options import (
    Device,
    Html,
    Json,
    Overwrite,
    Precision,
    Private,
    Seed,
    Title,
    WorkOptions,
    key_values,
)
from counterfoil.inputs.limits import most

EPILOG = """Examples:
  counterfoil explain pixels:colours world-quads --html heat.html
  counterfoil explain open-clip:ViT-B-32-quickgelu/openai winoground --questions 17,43 --html heat.html
  counterfoil explain itm:dandelin/vilt-b32-finetuned-coco winoground --method rollout --method transport
  counterfoil explain ckpt:runs/clip pairs --data my.csv --method patches --method occlusion
  counterfoil explain ckpt:runs/clip world-quads --grade"""


@usage.panels(
    Data="questions limit data images",
    Method="method grid fill mask",
    Grades="grade",
    Results="html json title pictures private quiet",
    Model="prompt settings seed",
)
def command(
    scorer: Annotated[
        str,
        typer.Argument(
            help="A model, or any scorer of pairs, as KIND:WHAT; see 'counterfoil list scorers'.",
            autocompletion=options.complete_scorers,
        ),
    ],
    benchmark: Annotated[
        str,
        typer.Argument(
            help="Name (see 'counterfoil list benchmarks') or folder of a benchmark.",
            autocompletion=options.complete_benchmarks,
        ),
    ],
    questions: Annotated[
        str | None,
        typer.Option(metavar="ID,ID,...", help="Ids of the questions; default: some, evenly spread."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=most("items"),
            help="How many questions, where none are named; default: 4, or 40 that are graded.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="File or folder of the benchmark, as of 'counterfoil evaluate'."),
    ] = None,
    images: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Folder of the images, where the data name files.")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="How heatmaps are made: patches, rollout, transport, grad-cam, occlusion; may be repeated. "
            "Default: what looks inside of the model, else occlusion."
        ),
    ] = None,
    grid: Annotated[
        int, typer.Option(min=1, max=64, help="Occlusion: so many cells to a side of the picture.")
    ] = 7,
    fill: Annotated[
        Literal["mean", "blur"], typer.Option(help="Occlusion: what a covered cell shows.")
    ] = "mean",
    mask: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", help="Put this in place of a left-out word, in place of deleting it."),
    ] = None,
    grade: Annotated[
        bool,
        typer.Option(
            "--grade",
            help="In the drawn world, where places are known: how often heatmaps point at the right thing.",
        ),
    ] = False,
    html: Html = None,
    json: Json = None,
    title: Title = "Which words count, and where",
    pictures: Annotated[
        Literal["auto", "always", "never"],
        typer.Option(help="Images on the page: auto asks the benchmark's licence."),
    ] = "auto",
    private: Private = False,
    device: Device = "auto",
    precision: Precision = "fp32",
    prompt: Annotated[
        str, typer.Option(help="Template put around captions, with {} for the caption.")
    ] = "{}",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the scorer; may be repeated."),
    ] = None,
    seed: Seed = 0,
    work: WorkOptions = WorkOptions(),
    overwrite: Overwrite = False,
) -> None:
    """Show which words of a caption count for a scorer, and where in the picture it looks for them.

    Each image of a question is scored with each caption, with the caption without each word, and with the
    picture with one cell after the other covered: this works for any scorer. Methods that look inside of a
    model are used where the model has what they need.
    """
    from counterfoil import terminal
    from counterfoil.benchmarks.data_paths import Places
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show_with_json
    from counterfoil.engine.perturbations import Occlusion
    from counterfoil.errors import InputError
    from counterfoil.jobs.explain import FEW, ExplainOptions, Explanation, explain
    from counterfoil.jobs.feedback import terminal_feedback
    from counterfoil.jobs.heat_grades import GRADED, grade_heatmaps
    from counterfoil.models.base import Options

    paths.check(html=html, json=json)
    if grade and html is not None:
        raise InputError("--grade gives numbers and no page", given="--html", allowed="--json")
    explain_options = ExplainOptions(
        questions=[name.strip() for name in questions.split(",")] if questions is not None else (),
        limit=limit or (GRADED if grade else FEW),
        methods=method or (),
        occlusion=Occlusion(grid, fill),
        mask=mask,
        data=Places.read([data] if data else (), [benchmark]),
        images=Places.read([images] if images else (), [benchmark], option="--images"),
        scorer=Options(
            device=device,
            precision=precision,
            prompt=prompt,
            seed=seed,
            settings=key_values(settings) if settings else {},
        ),
        **work.asked(),
    )
    feedback = terminal_feedback()
    explanation = (
        grade_heatmaps(scorer, benchmark, explain_options, feedback=feedback)
        if grade
        else explain(scorer, benchmark, explain_options, feedback=feedback)
    )
    show_with_json(explanation, json)
    if html is not None and isinstance(explanation, Explanation):
        explanation.to_html(html, title=title, pictures=pictures, private=private)
        terminal.note(f"page written to {html}")
