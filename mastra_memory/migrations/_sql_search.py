"""SQL of searching by words: scripts without spaces, and phrases."""

# What the search column is made of, and what a query is read with. Accents are dropped, and what
# is left is composed again (Hangul, kana). Characters of scripts that put no spaces between words
# (Thai and Lao, Burmese, Khmer, kana, Han) become words of their own, so that a part of a run can
# be found as a phrase. ASCII text, the common case, skips all of it. Signs within words part them:
# else `tea/coffee` is the name of a file, `List<String>` hides a tag, and neither part is found.
CREATE = r"""
CREATE OR REPLACE FUNCTION mastra_memory_fold(words text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN CASE WHEN octet_length(words) = length(words) THEN words
        ELSE normalize(regexp_replace(normalize(words, NFD), U&'[\0300-\036f]', '', 'g'), NFC)
        END;
CREATE FUNCTION mastra_memory_spaced(words text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN translate(CASE WHEN octet_length(words) = length(words) THEN words
        ELSE regexp_replace(words, '([\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\u3040-\u30ff'
            || '\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])', ' \1 ', 'g')
        END, '<>/\@=&?#:._-', repeat(' ', 13));
CREATE OR REPLACE FUNCTION mastra_memory_words(language regconfig, words text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN to_tsvector(language, mastra_memory_spaced(mastra_memory_fold(left(words, 100000))));
CREATE FUNCTION mastra_memory_phrase(language regconfig, words text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN phraseto_tsquery(language, mastra_memory_spaced(mastra_memory_fold(words)));
REINDEX INDEX mastra_thread_title_words;
"""
DROP = r"""
DROP FUNCTION IF EXISTS mastra_memory_frequency(tsvector, tsquery);
DROP FUNCTION mastra_memory_phrase(regconfig, text);
CREATE OR REPLACE FUNCTION mastra_memory_words(language regconfig, words text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN to_tsvector(language, mastra_memory_fold(left(words, 100000)));
DROP FUNCTION mastra_memory_spaced(text);
REINDEX INDEX mastra_thread_title_words;
"""
