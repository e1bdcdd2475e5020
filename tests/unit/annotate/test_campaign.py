"""The folder of a campaign: written whole, read back, refused in one line."""

import stat
from dataclasses import replace

import pytest

from annotate.small_campaigns import pixel
from counterfoil.annotate.campaign import RECIPE, SECRETS, create_folder, open_campaign, read_recipe
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.settings import CampaignRecipe
from counterfoil.errors import InputError
from refusals import refuses

RECIPE_OF_TWO = CampaignRecipe(form="yes-no", title='Two "pairs"', overlap=2, pay_per_hour=15)

IMAGES = {"red.png": pixel(), "blue.png": pixel("blue")}


def items():
    """Two pairs to judge and one whose answer is known."""
    return [
        WorkItem("1", {"image": "red.png", "caption": "A red square."}, instance="q", kind="colour"),
        WorkItem("2", {"image": "blue.png", "caption": "A red square."}, instance="q", truth="no"),
        WorkItem("3", {"image": "blue.png", "caption": "A blue square."}, "golden", {"match": ["yes"]}),
    ]


@pytest.fixture
def campaign(tmp_path):
    return create_folder(tmp_path / "campaign", RECIPE_OF_TWO, items(), IMAGES)


def test_what_is_written_is_read_back_and_the_digest_depends_on_items_and_settings(campaign, tmp_path):
    again = open_campaign(campaign.folder)
    assert (again.recipe, list(again.items), again.digest) == (RECIPE_OF_TWO, items(), campaign.digest)
    assert again.image("red.png").read_bytes() == pixel()
    assert "order of the words" in again.instructions_in()
    changed = [replace(items()[0], cells={"image": "red.png", "caption": "A green square."}), *items()[1:]]
    assert create_folder(tmp_path / "b", RECIPE_OF_TWO, changed, IMAGES).digest != campaign.digest
    other_title = replace(RECIPE_OF_TWO, title="Pairs")
    assert create_folder(tmp_path / "c", other_title, items(), IMAGES).digest == campaign.digest


def test_secrets_are_the_owners_alone_new_for_each_campaign_and_kept_where_it_is_made_again(
    campaign, tmp_path
):
    mode = stat.S_IMODE((campaign.folder / SECRETS).stat().st_mode)
    other = create_folder(tmp_path / "other", RECIPE_OF_TWO, items()[:1], {"red.png": pixel()})
    assert mode == 0o600
    assert set(campaign.secrets) == {"salt", "token"}
    assert campaign.secrets["token"] != other.secrets["token"]
    before = dict(campaign.secrets)
    assert create_folder(campaign.folder, RECIPE_OF_TWO, items(), IMAGES).secrets == before


@pytest.mark.parametrize("name", ["../secrets.json", "/etc/passwd", "secrets.json", "red.png/..", ""])
def test_only_images_of_items_are_found(campaign, name):
    refuses("no such image", campaign.image, name, error=InputError)


@pytest.mark.parametrize(
    ("of", "message"), [([], "a campaign needs items"), ([items()[0]] * 2, "an id is there twice; given: 1")]
)
def test_items_that_make_no_campaign_are_refused(tmp_path, of, message):
    refuses(message, create_folder, tmp_path / "new", RECIPE_OF_TWO, of, IMAGES, error=InputError)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("overlap = 0", "key 'overlap': out of range; given: 0; allowed: 1 to 10,000"),
        ('design = "blocks"', "key 'per_person'"),
        ('design = "rows"', "allowed: blocks, queue, adaptive"),
        ('keep_until = "soon"', "allowed: a date such as 2027-12-31"),
        ("certainty = 1.0", "key 'certainty'"),
        ('design = "adaptive"\nmost = 2', "key 'most'"),
        ('design = "adaptive"\nfirst_to = 10', "key 'most'.*given: 9; allowed: the 10 of first_to or more"),
        ("first_to = 3", "key 'first_to'.*allowed: 0 but for the design 'adaptive'"),
        ('design = "blocks"\nper_person = 4\npeople_per_block = 2', "a divisor of the overlap of 3"),
        ("people_per_block = 3", "1 but for the design 'blocks'"),
        ("by_direction = true", "False but for the design 'blocks'"),
    ],
)
def test_recipes_that_cannot_be_run_are_one_line(tmp_path, line, message):
    path = tmp_path / RECIPE
    path.write_text(f'form = "yes-no"\ntitle = "x"\n{line}\n')
    refuses(message, read_recipe, path, error=InputError)


def test_a_folder_without_a_recipe_is_no_campaign_and_a_recipe_needs_a_form(tmp_path):
    refuses(r"no campaign; .*annotate create", open_campaign, tmp_path)
    (tmp_path / RECIPE).write_text('title = "x"\n')
    refuses("no 'form'", read_recipe, tmp_path / RECIPE, error=InputError)
