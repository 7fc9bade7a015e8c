from spark_jobs.definitions.api import LinearModel

model = LinearModel(
    scores="payments_scored",
    features=("thousands", "is_small", "is_large", "is_abroad", "is_electronics"),
    label_of="payment_disputed",
    label_key="payment_id",
    promoted_as="payments_model_promoted",
    maturity="3 minutes",
    owner="payments",
    description="Which payments their cards' owners will dispute: a score above 0 is fraud.",
)
