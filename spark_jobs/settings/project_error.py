"""The error of a project's own files: a schema, a view or a model that cannot be used."""


class ProjectError(ValueError):
    """What a file of the project says cannot be used; the text names the file, and why."""
