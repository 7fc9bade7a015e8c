from spark_jobs.definitions.api import Aggregate, Count

view = Aggregate(
    of="sentence_posted",
    each={"word": "split(lower(text), '[^a-z0-9]+')"},
    where="word <> ''",
    by={"word": "word"},
    measures={"occurrences": Count()},
    owner="web",
    description="How often each word occurs in all sentences; a word is a run of a-z and 0-9, case folded.",
)
