"""Generated messages about many topics that an embedder can tell apart, always the same."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

TOPICS = [
    words.split()
    for words in (
        "bread flour oven dough yeast crust butter recipe cake sugar baker knead loaf pastry",
        "tennis racket court serve match tournament coach champion score player net training",
        "train ticket station platform delay sleeper conductor timetable railway luggage journey",
        "garden tulip soil seed rose compost lawn watering hedge pruning blossom greenhouse",
        "doctor appointment fever medicine hospital prescription nurse clinic cough vaccine pain",
        "invoice payment refund discount receipt order shipping customer warranty price billing",
        "guitar concert melody drummer band rehearsal chord singer piano orchestra album stage",
        "laptop keyboard screen battery software update password server network backup printer",
        "mountain hike trail tent backpack summit glacier valley boots compass campfire weather",
        "cat kitten whiskers litter vet purring scratch paw collar feeding toy adoption",
        "car engine brake garage tyre mechanic oil gear steering exhaust fuel insurance",
        "school teacher homework exam lesson pupil grade classroom essay library term",
        "painting brush canvas gallery museum portrait sketch colour exhibition sculpture artist",
        "rent apartment landlord lease kitchen balcony neighbour deposit elevator furniture moving",
        "salary meeting deadline manager project colleague promotion office interview contract",
        "beach swimming wave sunburn sand island surfing shell harbour sailing tide holiday",
        "coffee espresso bean roast barista mug milk filter caffeine cappuccino breakfast",
        "football goal referee stadium league striker penalty transfer supporter season trophy",
        "film actor director cinema scene script trailer premiere festival popcorn sequel",
        "election vote candidate parliament minister party campaign debate law citizen ballot",
        "star planet telescope galaxy orbit rocket astronaut comet satellite gravity eclipse",
        "wedding bride invitation bouquet ceremony honeymoon guest ring speech dance family",
        "novel author chapter poem publisher reader bookshop plot character translation story",
        "rain storm thunder snow forecast wind temperature fog umbrella frost sunshine cloud",
    )
]
FUNCTION_WORDS = (
    "I we you they my your about with after before because maybe never always really think want "
    "need found told asked yesterday tomorrow again still would could should the a this that is"
).split()
QUESTIONS = ("Do you remember the", "What did I say about the", "When was the", "Tell me about the")
START = datetime(2024, 1, 1, tzinfo=UTC)


class MessageRow(NamedTuple):
    """A generated message."""

    id: str
    thread_id: str
    resource_id: str
    role: str
    text: str
    created_at: datetime


def generate_text(number: int) -> str:
    """Return the text of one message: many words of one topic, two of another, function words."""
    source = random.Random(number)
    topic, second_topic = source.sample(TOPICS, 2)
    words = source.choices(topic, k=source.randint(3, 9)) + source.choices(second_topic, k=2)
    words += [*source.choices(FUNCTION_WORDS, k=len(words)), str(number % 997)]
    source.shuffle(words)
    return " ".join(words).capitalize() + "."


def generate_question(number: int) -> str:
    """Return a question about two words of one topic."""
    source = random.Random(-1 - number)
    words = source.sample(source.choice(TOPICS), 2)
    return f"{source.choice(QUESTIONS)} {' and the '.join(words)}?"


def generate_messages(
    sizes: Sequence[tuple[str, int]], per_thread: int = 50
) -> Iterator[MessageRow]:
    """Yield messages until every resource has as many as `sizes` gives it.

    Resources alternate, so that their rows are spread over the table as in a busy service.
    """
    remaining = dict(sizes)
    counts = dict.fromkeys(remaining, 0)
    number = 0
    while remaining:
        for resource_id in list(remaining):
            index = counts[resource_id]
            thread_id = f"{resource_id}-{index // per_thread}"
            yield MessageRow(
                id=f"{thread_id}-{index % per_thread}",
                thread_id=thread_id,
                resource_id=resource_id,
                role="assistant" if index % 2 else "user",
                text=generate_text(number),
                created_at=START + timedelta(seconds=number),
            )
            number += 1
            counts[resource_id] += 1
            remaining[resource_id] -= 1
            if not remaining[resource_id]:
                del remaining[resource_id]
