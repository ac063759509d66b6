"""Looking at motion: an interactive viewer in the browser, and recordings that need nothing but one."""

from dalembert.viewer.recording import record

__all__ = ["record"]
