"""The studies' printed numbers beside ours: machinery that asks each study for what its paper prints."""
