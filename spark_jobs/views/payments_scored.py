from spark_jobs.definitions.api import Alert, Row, Sequence

FEATURES = {
    "thousands": "amount_cents / 100000",
    "is_small": "if(amount_cents < 500, 1D, 0D)",
    "is_large": "if(amount_cents >= 50000, 1D, 0D)",
    "is_abroad": "if(country IN ('CH', 'DE', 'FR', 'AT'), 0D, 1D)",
    "is_electronics": "if(category = 'electronics', 1D, 0D)",
}
SCORE = " + ".join(["intercept", *(f"weight_{name} * ({feature})" for name, feature in FEATURES.items())])

view = Sequence(
    key="payment_id",
    rows={
        "payment": Row(
            of="payment_attempted",
            key="payment_id",
            reach="0 seconds",
            side_input="payments_model_promoted",
            columns={
                "attempted_at": "occurred_at",
                "card_id": "card_id",
                "amount_cents": "amount_cents",
                **FEATURES,
                "score": SCORE,
                "is_flagged": f"{SCORE} > 0D",
                "model_version": "model_version",
            },
        )
    },
    alert=Alert(of="payment_alerted", where="is_flagged", same=("payment_id", "model_version")),
    owner="payments",
    description="Each payment's features and its score by the newest model that was promoted before; above 0: fraud.",
)
