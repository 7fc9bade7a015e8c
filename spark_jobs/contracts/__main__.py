"""List the project's event types: `python -m spark_jobs.contracts`."""

from spark_jobs.contracts.loader import project_contracts

if __name__ == "__main__":
    for contract in project_contracts():
        fields = ", ".join(f"{field.name} {field.arrow}{'' if field.required else '?'}" for field in contract.fields)
        place = f"topic {contract.topic}, key {contract.key}, {contract.owner}"
        print(f"{contract.event_type} v{contract.version} ({place}): {fields}")
