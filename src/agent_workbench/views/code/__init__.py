"""Code that the model was shown: the code pane, search results, and the reasons why a piece was found."""
