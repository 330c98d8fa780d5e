"""The services that the functions of one session share: ports, settings, recorder, workspace, published updates."""
