"""Rules of approval, the effect of a policy, and the files of a proposal."""
