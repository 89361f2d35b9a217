"""The filters of the thread list: a form that is stored in the query string."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.admin import ListFilter, ModelAdmin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access, reviewers
from mastra_memory.admin.params import FIRST_DAY, LAST_DAY
from mastra_memory.content.redaction import mask_json
from mastra_memory.db import json_text, times
from mastra_memory.db.users import get_user_id
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Review, Tag, Thread
from mastra_memory.review.filters import ThreadFilters, filter_threads

YES_NO = [("", _("any")), ("yes", _("yes")), ("no", _("no"))]
PERIODS = [
    ("", _("any time")),
    ("today", _("today")),
    ("7", _("last 7 days")),
    ("30", _("last 30 days")),
    ("month", _("this month")),
    ("last_month", _("last month")),
]
"""Relative to the current day, so that saved views stay correct."""
ORIGINS = [("", _("any")), ("clone", _("clones")), ("original", _("originals"))]


class DayField(forms.DateField):
    """A date that does not overflow in any time zone."""

    default_validators = [MinValueValidator(FIRST_DAY), MaxValueValidator(LAST_DAY)]


class FilterForm(forms.Form):
    """All filters of the list. Each field is optional."""

    by = forms.ChoiceField(
        label=_("Search by"),
        required=False,
        choices=[("", _("by words")), ("meaning", _("by meaning"))],
    )
    resource = forms.CharField(label=_("Resource"), required=False)
    status = forms.ChoiceField(
        label=_("Status"), required=False, choices=[("", _("any")), *Review.Status.choices]
    )
    assignee = forms.ChoiceField(label=_("Assignee"), required=False)
    tag = forms.ChoiceField(label=_("Tag"), required=False)
    priority = forms.ChoiceField(
        label=_("Priority"), required=False, choices=[("", _("any")), *Review.Priority.choices]
    )
    active = forms.ChoiceField(label=_("Last activity"), required=False, choices=PERIODS)
    active_from = DayField(label=_("Last activity from"), required=False)
    active_to = DayField(label=_("Last activity until"), required=False)
    created_from = DayField(label=_("Created from"), required=False)
    created_to = DayField(label=_("Created to"), required=False)
    notes = forms.ChoiceField(label=_("Has notes"), required=False, choices=YES_NO)
    tool_errors = forms.ChoiceField(label=_("Has tool errors"), required=False, choices=YES_NO)
    memory = forms.ChoiceField(label=_("Has working memory"), required=False, choices=YES_NO)
    origin = forms.ChoiceField(label=_("Clones"), required=False, choices=ORIGINS)
    min_messages = forms.IntegerField(
        label=_("At least … messages"), required=False, min_value=0, max_value=1_000_000
    )
    max_messages = forms.IntegerField(
        label=_("At most … messages"), required=False, min_value=0, max_value=1_000_000
    )
    metadata = forms.CharField(
        label=_("Metadata"),
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "plan=plus, priority=high"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        own = [("me", _("me")), ("none", _("unassigned"))]
        self._choose("assignee", [*own, *reviewers.list_choices()])
        self._choose("tag", [(tag.name, tag.name) for tag in Tag.objects.all()])
        for field in self.fields.values():
            if isinstance(field, forms.DateField):
                field.widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")

    def _choose(self, name: str, choices: list[tuple[str, Any]]) -> None:
        self.fields[name].choices = [("", _("any")), *choices]  # type: ignore[attr-defined]

    def clean_metadata(self) -> dict[str, Any]:
        """Parse `key=value, key=value`. Numbers, true, false and null are read as JSON."""
        wanted = {}
        for pair in self.cleaned_data["metadata"].split(","):
            key, equals, value = pair.partition("=")
            if not pair.strip():
                continue
            if not equals or not key.strip():
                raise forms.ValidationError(_("Use the format key=value."))
            wanted[key.strip()] = _parse_json_or_text(value.strip())
        return wanted

    def get_filters(self, user: Any) -> ThreadFilters:
        """Return the conditions of a valid form."""
        data = self.cleaned_data
        assignee = get_user_id(user) if data["assignee"] == "me" else data["assignee"]
        first, last = get_period(data["active"], timezone.localdate(times.now()))
        return ThreadFilters(
            resource=data["resource"],
            status=data["status"],
            priority=int(data["priority"]) if data["priority"] else None,
            assignee=assignee,
            tag=data["tag"],
            active_from=_start_of_day(
                max(filter(None, (data["active_from"], first)), default=None)
            ),
            active_to=_end_of_day(min(filter(None, (data["active_to"], last)), default=None)),
            created_from=_start_of_day(data["created_from"]),
            created_to=_end_of_day(data["created_to"]),
            notes=_parse_choice(data["notes"], "yes"),
            tool_errors=_parse_choice(data["tool_errors"], "yes"),
            working_memory=_parse_choice(data["memory"], "yes"),
            clone=_parse_choice(data["origin"], "clone"),
            min_messages=data["min_messages"],
            max_messages=data["max_messages"],
            metadata=data["metadata"],
        )


def get_period(name: str, today: date) -> tuple[date | None, date | None]:
    """Return the first and last day of a period; None stands for no limit."""
    if name == "last_month":
        last = today.replace(day=1) - timedelta(days=1)
        return last.replace(day=1), last
    if name == "month":
        return today.replace(day=1), None
    if not name:
        return None, None
    return today - timedelta(days=0 if name == "today" else int(name) - 1), None


def _parse_json_or_text(value: str) -> Any:
    try:
        parsed = json_text.loads(value)
    except InvalidInput:
        return value
    return value if isinstance(parsed, dict | list) else parsed


def _get_label(field: forms.Field, value: str) -> Any:
    """Return the label of a choice, or any other value as it is."""
    return dict(getattr(field, "choices", ())).get(value, value)


def _parse_choice(value: str, positive: str) -> bool | None:
    return value == positive if value else None


def _start_of_day(day: date | None) -> datetime | None:
    return timezone.make_aware(datetime.combine(day, time())) if day else None


def _end_of_day(day: date | None) -> datetime | None:
    """Return the exclusive end of the day."""
    return _start_of_day(day + timedelta(days=1)) if day and day < date.max else None


@dataclass(frozen=True, slots=True)
class ActiveFilter:
    """A filter in use, and the URL of the list without it."""

    label: Any
    value: Any
    without: str


class ThreadFilter(ListFilter):
    """The whole form as one Django filter, so that Django accepts its parameters."""

    title = _("filters")
    template = "admin/mastra_memory/thread/no_filter.html"
    parameter_names = (*FilterForm.base_fields, "all")
    """The names of the form's fields, and `all`, which shows the list without the default view."""

    def __init__(
        self,
        request: HttpRequest,
        params: dict[str, Any],
        model: Any,
        model_admin: "ModelAdmin[Any]",
    ) -> None:
        super().__init__(request, params, model, model_admin)
        self.user, self.query = request.user, request.GET
        given = {}
        for name in self.parameter_names:
            if name in params:
                value = params.pop(name)
                given[name] = value[-1] if isinstance(value, list) else value
        self.form = FilterForm(given)
        self.used_parameters = {name: value for name, value in given.items() if value}

    def has_output(self) -> bool:
        """Return True: Django would skip the filter otherwise."""
        return True

    @property
    def chips(self) -> Sequence[ActiveFilter]:
        """Return the filters in use, each with a link that removes it."""
        return [
            ActiveFilter(field.label, _get_label(field, self.form.data[name]), self._without(name))
            for name, field in self.form.fields.items()
            if name != "by" and self.form.data.get(name)
        ]

    def _without(self, name: str) -> str:
        kept = [(n, v) for n, v in self.query.items() if v and n not in (name, "p", "all")]
        return "?" + (urlencode(kept) or "all=1")

    def choices(self, changelist: Any) -> Iterator[Mapping[str, object]]:
        """Return no choices: the template renders the form itself."""
        return iter(())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Thread]) -> QuerySet[Thread]:
        """Return the matching threads; none if the form is invalid, which the page reports."""
        if not self.form.is_valid():
            return queryset.none()
        wanted = self.form.get_filters(self.user)
        if mask_json(wanted.metadata, access.get_mask(self.user)) != wanted.metadata:
            message = _("You cannot search for personal data that is masked for you.")
            self.form.add_error("metadata", message)
            return queryset.none()
        return filter_threads(queryset, wanted)

    def expected_parameters(self) -> list[str | None]:
        """Return the query parameters of this filter."""
        return [*self.parameter_names]
