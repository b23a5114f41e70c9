"""Pack a suite for workers that fetch its data from a web server or from S3.

``base_url`` is it an address that AMLB can fetch from · ``folder`` the folder to write to ·
``export`` the files to upload, all in order, and what it tells.
"""

from amlb_ext.publish.export.export import Export, export_suite, export_summary
from amlb_ext.publish.export.folder import UPLOAD

__all__ = ["UPLOAD", "Export", "export_suite", "export_summary"]
