"""How sure a finding is, as tests of its proofs ask: whatever its rank is."""

from __future__ import annotations

from floodline.scan import Finding


def sureness(finding: Finding) -> str:
    """Return `certain` if all four claims are proved, else the level of the finding."""
    proved = all(proof.state == "proved" for proof in finding.proofs)
    return "certain" if proved and finding.confidence != "low" else str(finding.confidence)
