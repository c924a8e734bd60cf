"""Disparity's prompts: one id whatever the model reads."""

from __future__ import annotations

from beholder.studies.disparity.prompts import disparity_prompts, drawn_prompts


def test_contrastive_models_read_clips_template_and_others_the_bare_words():
    said, bare = (disparity_prompts(["dining table", "necktie.n.01"], bare=b) for b in (False, True))
    assert said.texts == ["a photo of a dining table", "a photo of a necktie"]
    assert bare.texts == ["dining table", "necktie"]
    assert said.table["prompt_id"].to_list() == bare.table["prompt_id"].to_list() == said.texts
    assert said.table["concept"].to_list() == ["dining table", "necktie.n.01"]


def test_two_senses_of_a_word_are_two_prompts():
    table = disparity_prompts(["bat.n.01", "bat.n.05"]).table
    assert table["text"].to_list() == ["a photo of a bat"] * 2
    assert table["prompt_id"].n_unique() == 2


def test_own_templates_are_all_asked():
    prompts = disparity_prompts(["dog"], {"a": "a {}", "b": "the {} here"})
    assert prompts.texts == ["a dog", "the dog here"]
    assert prompts.table["level"].to_list() == ["a", "b"]


def test_drawn_things_have_their_own_article():
    assert drawn_prompts(["glasses", "tie"]).texts == [
        "a drawing of a person with glasses",
        "a drawing of a person with a tie",
    ]
