"""Pack a suite for workers that fetch its data from a web server or from S3.

``base_url`` is it an address that AMLB can fetch from · ``archives`` the files to upload ·
``folder`` the folder to write to · ``write`` what is uploaded, and what an export tells ·
``export`` all in order.
"""

from amlb_ext.publish.export.export import export_suite
from amlb_ext.publish.export.folder import UPLOAD
from amlb_ext.publish.export.write import Export, export_summary

__all__ = ["UPLOAD", "Export", "export_suite", "export_summary"]
