"""Pack a suite for workers that fetch its data from a web server or from S3.

``base_url`` is it an address that AMLB can fetch from · ``archives`` the files to upload ·
``folder`` the folder to write to · ``write`` what is written there, whatever the suite holds ·
``export`` all in order, for a suite of tables.
"""

from amlb_ext.publish.export.export import export_suite
from amlb_ext.publish.export.folder import UPLOAD
from amlb_ext.publish.export.write import Export, export_summary

__all__ = ["UPLOAD", "Export", "export_suite", "export_summary"]
