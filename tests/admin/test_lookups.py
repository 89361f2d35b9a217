"""Which lookups the lists of the admin accept in their query string."""

from typing import Any

import pytest
from django.contrib import admin as django_admin
from django.test import Client
from django.urls import reverse

from mastra_memory.admin.base import DeclaredLookupsMixin
from mastra_memory.admin.thread_filters import FilterForm

SITES = [
    (model, model_admin)
    for model, model_admin in django_admin.site._registry.items()
    if model._meta.app_label in ("mastra_memory", "project")
]
LOOKUPS = ("exact", "startswith", "contains", "icontains", "regex", "iregex", "gt", "in", "range")


@pytest.mark.parametrize(("model", "model_admin"), SITES, ids=[m.__name__ for m, _ in SITES])
def test_lookup_allowed__only_parameters_of_declared_filters(model: Any, model_admin: Any) -> None:
    assert isinstance(model_admin, DeclaredLookupsMixin)
    declared = {entry for entry in model_admin.list_filter if isinstance(entry, str)}
    for field in model._meta.get_fields():
        for lookup in LOOKUPS:
            allowed = lookup == "exact" and field.name in declared
            assert model_admin.lookup_allowed(f"{field.name}__{lookup}", "a") is allowed
        if field.name not in FilterForm.base_fields:
            assert model_admin.lookup_allowed(field.name, "a") is (field.name in declared)
        assert not model_admin.lookup_allowed(f"{field.name}__id__startswith", "a")
        assert not model_admin.lookup_allowed(f"{field.name}__user__password__regex", "a")


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("mastra_memory_thread", "title__startswith=a"),
        ("mastra_memory_thread", "messages__text__regex=(a|aa)%2B%24"),
        ("mastra_memory_thread", "title__regex=(.*)*x"),
        ("mastra_memory_workingmemory", "content__contains=a"),
        ("mastra_memory_workingmemory", "thread__title__startswith=a"),
        ("mastra_memory_observationalrecord", "active_observations__regex=a"),
        ("mastra_memory_modelusage", "created_at__year=2026"),
        ("mastra_memory_tag", "thread_count__gt=1"),
        ("project_accesstoken", "prefix__startswith=a"),
    ],
)
def test_changelist__refuses_undeclared_lookups(admin: Client, name: str, query: str) -> None:
    assert admin.get(f"{reverse(f'admin:{name}_changelist')}?{query}").status_code == 400


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("mastra_memory_thread", "resource=a&status=open&o=4&all=1"),
        ("mastra_memory_workingmemory", "scope__exact=thread"),
        ("mastra_memory_observationalrecord", "scope=thread&origin_type__exact=initial"),
        ("mastra_memory_modelusage", "created_at__gte=2026-01-01+00:00:00%2B00:00"),
        ("mastra_memory_modelusage", "created_at__lt=2027-01-01+00:00:00%2B00:00"),
        ("mastra_memory_embeddingrequest", "state=failed"),
        ("mastra_memory_criterion", "active__exact=1"),
        ("project_accesstoken", "expires_at__isnull=True"),
    ],
)
def test_changelist__accepts_its_own_filters(admin: Client, name: str, query: str) -> None:
    assert admin.get(f"{reverse(f'admin:{name}_changelist')}?{query}").status_code == 200
