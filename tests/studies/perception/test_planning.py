"""Planning: the two smallest groups decide which gap can be found."""

from __future__ import annotations

import pytest
from studies.perception.worlds import photographs

from beholder.datasets.dataset import Dataset
from beholder.studies.perception.study import plan
from beholder.studies.rows import PlanOptions


@pytest.mark.slow
def test_more_images_find_smaller_gaps():
    few, many = (
        {row.concept: row.value for row in plan(Dataset("d", "", "", photographs(n)), PlanOptions())}
        for n in (120, 480)
    )
    assert set(few) == {"race", "gender", "race × gender"}
    assert all(few[attribute] > 1.7 * many[attribute] for attribute in few)
