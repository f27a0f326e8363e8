"""What is handed out: a folder with rows, recoding, policy, certificate and report, and questions that it answers.

``release`` has :class:`Release`, the certificate with its format, and the folder that is written in one step; ``query``
answers COUNT, SUM and AVG from published rows.
"""
