"""Visual Genome: 108,077 photographs whose objects carry WordNet synsets; groups from the synsets of people in them.

Source: the Visual Genome project (version 1.4 has synsets). Licence: CC BY 4.0. Layout: `vg/objects.json`, and where
they are there `image_data.json` (picture sizes, for areas), `object_alias.txt` (names that mean the same),
`VG_100K/*.jpg` and `VG_100K_2/*.jpg`. `objects.json` is read record by record and never held whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from beholder.core.digests import digest, file_digest
from beholder.core.errors import DataError, MissingData
from beholder.datasets.dataset import Dataset, DatasetSource
from beholder.datasets.group_words import GroupWords, read_group_words
from beholder.datasets.settings import Setting, Settings
from beholder.datasets.steps import Steps, group_counts
from beholder.datasets.visual_genome_files import Collected, image_files, read_aliases, read_objects, read_sizes

LICENCE = "CC BY 4.0"
GENDER_TERMS = GroupWords(
    "gender",
    {
        "woman": tuple(
            """
    maid.n.02 woman.n.01 girl.n.01 lady.n.01 female.n.01 mother.n.01 lass.n.01 ma.n.01 widow.n.01 bride.n.01
    daughter.n.01 grandma.n.01 granddaughter.n.01 bridesmaid.n.01 girlfriend.n.01 sister.n.01 wife.n.01
    female_child.n.01 white_woman.n.01 dame.n.01 matriarch.n.01 mother_figure.n.01 dame.n.02 great-aunt.n.01
    donna.n.01
    """.split()
        ),
        "man": tuple(
            """
    man.n.01 male_child.n.01 guy.n.01 male.n.01 groom.n.01 husband.n.01 grandfather.n.01 son.n.01 boyfriend.n.01
    brother.n.01 grandson.n.01 groomsman.n.01 ex-husband.n.01 uncle.n.01 godfather.n.01
    """.split()
        ),
    },
)
"""The study's synsets."""
SETTINGS = {
    "objects": Setting("", "another file of objects, in Visual Genome's format"),
    "image_data": Setting("", "another file of picture sizes"),
    "aliases": Setting("", "another table of names that mean the same"),
    "groups": Setting("", "own groups: a table with the columns group and word (a synset or a name)"),
    "without": Setting("person.n.01,people.n.01", "these synsets or names leave their image out; empty: none"),
    "group_images": Setting("50", "fewest images of every group in which a concept that is kept occurs"),
}


def load(folder: Path, settings: Mapping[str, str] | None = None) -> Dataset:
    """The images with people of one group only, with the concepts that enough images of every group show."""
    chosen = Settings("visual-genome", SETTINGS, settings)
    path = chosen.path("objects", folder) or folder / "objects.json"
    if not path.is_file():
        raise MissingData(
            f"Visual Genome's objects are not at {path}.\nGet objects.json (version 1.4, with synsets) from the Visual "
            "Genome project and put it there, or name a file: --set objects=FILE"
        )
    groups_path = chosen.path("groups", folder)
    groups = read_group_words(groups_path) if groups_path else GENDER_TERMS
    steps = Steps()
    sizes = read_sizes(_beside(chosen, "image_data", folder, "image_data.json", steps))
    aliases = read_aliases(_beside(chosen, "aliases", folder, "object_alias.txt", steps))
    collected = read_objects(path, groups, frozenset(chosen.words("without")), sizes, aliases)
    _say_steps(collected, groups, chosen, steps)
    table, objects = frequent_concepts(collected, groups, chosen.number("group_images"), steps)
    files = image_files(folder)
    uris = [files.get(image, str(folder / "VG_100K" / f"{image}.jpg")) for image in table["image_id"]]
    table = table.select("image_id", pl.Series("uri", uris), pl.col("group").alias(groups.attribute))
    steps.note(group_counts(table, groups.attribute))
    return Dataset(
        "visual-genome",
        digest([file_digest(path), chosen.contents(folder)]),
        LICENCE,
        table,
        tuple(steps.notes),
        partial=True,
        remarks=lambda rows: [group_counts(rows, groups.attribute)],
        objects=objects,
        group_words=groups,
        source_ids=frozenset(collected.every_image),
    )


def _beside(chosen: Settings, setting: str, folder: Path, name: str, steps: Steps) -> Path | None:
    """A file that may be there; where it is not, a note says what is lost."""
    path = chosen.path(setting, folder) or folder / name
    if path.is_file():
        return path
    lost = {"image_data": "areas of objects are unknown", "aliases": "names stay as annotators wrote them"}
    steps.note(f"{name} is not here: {lost[setting]}")
    return None


def _say_steps(collected: Collected, groups: GroupWords, chosen: Settings, steps: Steps) -> None:
    steps.add("with annotated objects", len(collected.every_image))
    steps.add(f"objects name exactly one group of {groups.attribute}", collected.single_group)
    if chosen.words("without"):
        steps.add(f"no object is {' or '.join(chosen.words('without'))}", len(collected.image_ids))
    steps.note(f"{collected.unnamed:,} objects of these images have no synset and are left out")


def frequent_concepts(
    collected: Collected, groups: GroupWords, fewest: int, steps: Steps
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The concepts in enough images of every group, and the images that have one."""
    kept = [
        concept
        for concept in collected.concepts
        if all(collected.images_with[group, concept] >= fewest for group in groups.groups)
    ]
    steps.note(
        f"concepts: {len(kept):,} of {len(collected.concepts):,} synsets are in at least {fewest} images of every group"
    )
    if not kept:
        raise DataError(
            "No concept of Visual Genome is left after these steps:\n"
            + "\n".join(steps.notes)
            + f"\nA smaller share of the data may need --set group_images=N below {fewest}."
        )
    objects = collected.objects(kept)
    table = pl.DataFrame({"image_id": collected.image_ids, "group": collected.groups})
    table = table.join(objects.select("image_id"), on="image_id", how="semi", maintain_order="left")
    steps.add("at least one of the concepts is in the image", table.height)
    return table, objects


SOURCE = DatasetSource(
    name="visual-genome",
    title="Visual Genome: images with people of one gender, objects as WordNet synsets",
    licence=LICENCE,
    origin="the Visual Genome project's page (version 1.4)",
    layout="objects.json, image_data.json, object_alias.txt, VG_100K/*.jpg, VG_100K_2/*.jpg",
    images=108_077,
    load=load,
    directory="vg",
    count=lambda folder: len(image_files(folder)),
    settings=SETTINGS,
    labels="gender from the WordNet synsets that annotators gave the people; objects by annotators",
    intended="describing pictures by their objects and relations",
)
