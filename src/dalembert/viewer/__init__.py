"""Views of motion: an interactive viewer in the browser, recordings that need nothing but one, and strips
of pictures.
"""

from dalembert.viewer.contact_sheet import contact_sheet
from dalembert.viewer.live import Viewer, view
from dalembert.viewer.page import record

__all__ = ["Viewer", "contact_sheet", "record", "view"]
