"""How Sphinx builds the documentation: `make docs`."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

# Tutorials and figures run while the pages are built: one thread, no window, no progress bars.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["MPLBACKEND"] = "agg"

import amlb_ext  # noqa: E402
from amlb_ext.stats.contrasts import SMALLEST_EFFECTIVE_SIZE  # noqa: E402

project = "hardsynth"
smartquotes = False  # they turn --flag into –flag
author = "The hardsynth authors"
copyright = f"2025–2026, {author}"
release = version = amlb_ext.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "matplotlib.sphinxext.plot_directive",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "hardsynth_reference",
]

# Pages

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "_build",
    # where stored certificates say that a page stands
    "validity.md",
    "relations.md",
    "composition.md",
    "tutorials/*",  # their source; the gallery writes pages into auto_tutorials/
    "auto_tutorials/*.py.md5",
    "auto_tutorials/sg_execution_times.rst",
    "sg_execution_times.rst",
]
myst_enable_extensions = [
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "substitution",
]
# numbers that pages take from the program
myst_substitutions = {"smallest_effective_size": f"{SMALLEST_EFFECTIVE_SIZE:.0f}"}
myst_heading_anchors = 4
# a page of the repository that is no page of the site, such as a protocol of a study
myst_links_external_new_tab = False

# The Python interface

autosummary_generate = True
autodoc_typehints = "none"
add_module_names = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Broken references are errors; these names are documented nowhere, or by others
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!hardsynth\.).*"),
]

# Tutorials

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "auto_tutorials",
    "filename_pattern": r"/\d_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": False,
    "plot_gallery": True,
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib",),
    "doc_module": ("hardsynth",),
    "copyfile_regex": r"",
}
suppress_warnings = ["config.cache"]

plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = False
plot_formats = [("svg", 100)]
plot_rcparams = {"svg.hashsalt": "hardsynth", "figure.dpi": 100}

# Look

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "hardsynth"
html_static_path = ["_static"]
# at the root of the site, where programs look
html_extra_path = ["llms.txt", "../AGENTS.md"]
html_css_files = ["hardsynth.css"]
html_js_files = ["hardsynth.js"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "hardsynth"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "faq": [], "glossary": [], "troubleshooting": []}
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Links outside are looked at by `make docs-links` only
linkcheck_timeout = 20
linkcheck_ignore = [r"https://HOST/.*", r"http://127\.0\.0\.1.*"]
