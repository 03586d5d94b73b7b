"""What is reported: the record of a finding, its confidence, the report and the audit."""
