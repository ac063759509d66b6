"""Looking at motion: an interactive viewer in the browser, and recordings that need nothing but one."""

from dalembert.viewer.live import Viewer, view
from dalembert.viewer.recording import record

__all__ = ["Viewer", "record", "view"]
