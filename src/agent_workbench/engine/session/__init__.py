"""Running session: driven by a person's intents or by the policy, and the questions asked before it opens."""
