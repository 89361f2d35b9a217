"""Made-up talk about many subjects, always the same, that an embedder can tell apart."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

SUBJECTS = [
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
LINKS = (
    "I we you they my your about with after before because maybe never always really think want "
    "need found told asked yesterday tomorrow again still would could should the a this that is"
).split()
OPENINGS = ("Do you remember the", "What did I say about the", "When was the", "Tell me about the")
START = datetime(2024, 1, 1, tzinfo=UTC)


def text(number: int) -> str:
    """One message: a subject of its own, some of another, and what holds sentences together."""
    source = random.Random(number)
    main, other = source.sample(SUBJECTS, 2)
    words = source.choices(main, k=source.randint(3, 9)) + source.choices(other, k=2)
    words += source.choices(LINKS, k=len(words)) + [str(number % 997)]
    source.shuffle(words)
    return " ".join(words).capitalize() + "."


def question(number: int) -> str:
    """Something to look for."""
    source = random.Random(-1 - number)
    words = source.sample(source.choice(SUBJECTS), 2)
    return f"{source.choice(OPENINGS)} {' and the '.join(words)}?"


def messages(sizes: Sequence[tuple[str, int]], per_thread: int = 50) -> Iterator[tuple]:
    """Id, thread, resource, role, text, time of every message; resources take turns.

    `sizes` says how many messages each resource has. They lie scattered in the tables, as they do
    where many people talk at the same time.
    """
    left = dict(sizes)
    said = dict.fromkeys(left, 0)
    number = 0
    while left:
        for resource in list(left):
            place = said[resource]
            thread = f"{resource}-{place // per_thread}"
            role = "assistant" if place % 2 else "user"
            at = START + timedelta(seconds=number)
            yield f"{thread}-{place % per_thread}", thread, resource, role, text(number), at
            number += 1
            said[resource] += 1
            left[resource] -= 1
            if not left[resource]:
                del left[resource]
