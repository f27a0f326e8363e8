"""What each method can be told in a policy: ``diffgen``, ``risk_utility``, and the ``sampling_plan`` of its private
form.
"""
