"""Splitting of texts into words, and finding each of them."""

import pytest

from mastra_memory.memory import Memory
from mastra_memory.search import snippet, words
from mastra_memory.search.query import parse_query
from tests.support.factories import a_message, make_thread, save

WORDS = {
    "I was overbilled—again.": "i was overbilled again",
    "Your “guarantee” is worthless… Zipperbroken’s fault": (
        "your guarantee is worthless zipperbroken s fault"
    ),
    "😡furious😡 👍🏽ok": "emoji1f621 furious emoji1f621 emoji1f44d emoji1f3fd ok",
    "straße STRASSE Strasse": "strasse strasse strasse",
    "Été ÇA Łódź İstanbul ΣΊΣΥΦΟΣ": "ete ca lodz istanbul σισυφοσ",
    "tea/coffee user_id": "tea coffee user id",
    "C++ and C#, not C": "c cplusplus and c csharp not c",
    "https://shop.example.com/cart?item=7": "https shop example com cart item 7",
    "anna.lee@example.com": "anna lee example com",
    "ORD-2024-00123 v1.2.3 $1,299.00 #refund": "ord 2024 00123 v1 2 3 1 299 00 refund",
    "هل وصل الطلب؟ نعم، وَصَلَ": "هل وصل الطلب نعم وصل",
    "שָׁלוֹם צה״ל־מחר": "שלום צה ל מחר",
    "नमस्ते, दुनिया।": "नमस्ते दुनिया",
    "天气好iPhone版": "天 气 好 iphone 版",
    "ﾃｽﾄ テスト": "テ ス ト テ ス ト",
    "환불을": "환 불 을",
    "zero\u200bwidth soft\u00adhyphen e\u0301te\u0301": "zero width softhyphen ete",
    "½ m² ٣": "1 2 m2 3",
}


@pytest.mark.parametrize("text", WORDS)
def test_normalize_words__splits_by_unicode_properties(text: str) -> None:
    assert words.normalize_words(text).split() == WORDS[text].split()


def test_normalize_words__reads_the_beginning_of_a_text() -> None:
    assert len(words.normalize_words("é " * words.MAX_CHARACTERS)) <= words.MAX_CHARACTERS


SAMPLES = {
    "english": ("I was overbilled—again. “Guarantee” is worthless…", "overbilled guarantee"),
    "french": ("L’été dernier… «remboursement» refusé", "été remboursement refusé"),
    "german": ("Die Straße—gesperrt. Größe fehlt!", "strasse gesperrt größe"),
    "spanish": ("¿Dónde está mi devolución?", "dónde devolución"),
    "portuguese": ("Não recebi a devolução…", "devolução recebi"),
    "italian": ("L’ordine è già “spedito”.", "ordine spedito"),
    "polish": ("Gdzie jest „zwrot”—Łódź?", "zwrot łódź"),
    "czech": ("Kde je moje objednávka?", "objednávka"),
    "turkish": ("SIKINTI var: İade nerede?", "sıkıntı iade"),
    "russian": ("«Возврат»—не пришёл…", "возврат пришёл"),
    "ukrainian": ("Де моє замовлення?", "замовлення"),
    "greek": ("ΠΟΎ είναι η παραγγελία;", "που παραγγελία"),
    "arabic": ("هل وصل الطلب؟ نعم، شكرا", "الطلب نعم"),
    "persian": ("سفارش من کجاست؟ می‌خواهم", "كجاست می‌خواهم"),
    "hebrew": ("איפה ההזמנה? צה״ל", "ההזמנה צה״ל"),
    "hindi": ("मेरा ऑर्डर कहाँ है?", "ऑर्डर कहाँ"),
    "bengali": ("আমার অর্ডার কোথায়?", "অর্ডার কোথায়"),
    "tamil": ("என் ஆர்டர் எங்கே?", "ஆர்டர்"),
    "thai": ("คำสั่งซื้อของฉันอยู่ที่ไหน", "สั่งซื้อ"),
    "vietnamese": ("Đơn hàng của tôi ở đâu?", "hàng tôi"),
    "chinese": ("我的订单在哪里？退款！", "订单 退款"),
    "japanese": ("注文はどこですか？コーヒーを", "注文 コーヒー"),
    "korean": ("주문을 환불해 주세요…", "주문 환불"),
    "georgian": ("სად არის ჩემი შეკვეთა?", "შეკვეთა"),
    "emoji": ("😡furious😡again", "furious 😡"),
    "names": ("Use C++ or user_id, see ECONNREFUSED", "C++ user_id user econnrefused"),
    "addresses": (
        "See https://shop.example.com/cart, mail anna@example.com",
        "shop.example.com cart",
    ),
    "numbers": ("ORD-2024-00123 (v1.2.3) for $1,299.00 #refund", "ORD-2024-00123 00123 v1.2.3"),
    "prices": ("It costs $1,299.00 or €12.50 #sale", "1,299.00 €12.50 #sale sale"),
    "pairs": ("We have tea/coffee", "tea coffee tea/coffee"),
}


@pytest.fixture
def sample_messages(db: None) -> None:
    thread = make_thread("alice", "samples")
    save([a_message(thread, name, text=text) for name, (text, _) in SAMPLES.items()])


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.usefixtures("sample_messages")
def test_search__finds_and_marks_each_word(name: str) -> None:
    _text, sought = SAMPLES[name]
    for word in sought.split():
        result = Memory().search(word, resource_id="alice", search_type="text")
        hits = {hit.id: hit.snippet for hit in result.results}
        assert name in hits, word
        assert "<mark>" in (hits[name] or ""), word


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "sought", "expected"),
    [
        ("furious—worthless", "worthless", "furious—<mark>worthless</mark>"),
        ("😡furious😡", "furious", "😡<mark>furious</mark>😡"),
        ("Straße", "STRASSE", "<mark>Straße</mark>"),
        ("وصل الطلب؟", "الطلب", "وصل <mark>الطلب</mark>؟"),
        ("환불을 요청", "환불", "<mark>환불</mark>을 요청"),
        ("user_id", "user_id", "<mark>user</mark>_<mark>id</mark>"),
    ],
)
def test_highlight_snippets__marks_words_as_they_are_split(
    text: str, sought: str, expected: str
) -> None:
    assert snippet.highlight_snippets({"m": text}, parse_query(sought))["m"] == expected
