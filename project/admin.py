"""Access tokens in the admin, and Django's own users and groups."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import ForeignKey, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from mastra_memory.admin.base import DeclaredLookupsMixin
from project.models import AccessToken

if TYPE_CHECKING:
    _UserAdmin = UserAdmin[User]
else:  # Django's class takes no type arguments when it runs.
    _UserAdmin = UserAdmin


@admin.register(AccessToken)
class AccessTokenAdmin(DeclaredLookupsMixin):
    """Staff see and create their own tokens; superusers see and create all."""

    list_display = ["name", "prefix", "user", "created_at", "expires_at", "last_used_at", "live"]
    list_filter = ["expires_at"]
    list_select_related = ["user"]
    search_fields = ["name", "prefix"]
    fields = ["user", "name", "expires_at"]
    actions = ["revoke"]

    @admin.display(boolean=True, description="live")
    def live(self, token: AccessToken) -> bool:
        """Return True if the token is accepted by the API."""
        return token.is_live and token.user.is_active

    @admin.action(description="Revoke selected access tokens", permissions=["change"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[AccessToken]) -> None:
        """Revoke tokens now. The rows are kept as a record of who had which token."""
        live = [token for token in tokens if token.is_live]
        for token in live:
            self.log_change(request, token, "Revoked.")
        AccessToken.objects.filter(pk__in=[token.pk for token in live]).revoke()
        self.message_user(request, f"Revoked: {len(live)}.", messages.SUCCESS)

    def get_queryset(self, request: HttpRequest) -> QuerySet[AccessToken]:
        """Return all tokens for superusers, and their own tokens for other staff."""
        tokens = super().get_queryset(request)
        return tokens if _is_superuser(request) else tokens.filter(user=request.user.pk)

    def get_fields(self, request: HttpRequest, obj: AccessToken | None = None) -> Any:
        """Return the fields of the form, with the prefix and the times of an existing token."""
        shown = ["user", "name", "expires_at"]
        return shown if obj is None else [*shown, "prefix", "created_at", "last_used_at"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: AccessToken | None = None
    ) -> list[str]:
        """Make everything but the name of an existing token read-only."""
        fixed = ["user", "expires_at", "prefix", "created_at", "last_used_at"]
        return fixed if obj else []

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer only the current user, whose rights the token grants; superusers choose any."""
        if db_field.name == "user":
            kwargs["initial"] = request.user.pk
            if not _is_superuser(request):
                own = {"pk": request.user.pk}
                kwargs["queryset"] = get_user_model()._default_manager.filter(**own)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: AccessToken, form: Any, change: bool) -> None:
        """Generate the secret of a new token and keep it for the response to this request."""
        if not change:
            request.new_secret = obj.generate_secret()  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def response_add(
        self, request: HttpRequest, obj: AccessToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret in this response; to redirect, it would have to be stored."""
        context = self.admin_site.each_context(request) | {
            "title": "Access token created",
            "opts": self.opts,
            "token": obj,
            "secret": request.new_secret,  # type: ignore[attr-defined]
        }
        template = "admin/project/accesstoken/created.html"
        return TemplateResponse(request, template, context)


admin.site.unregister([User, Group])


@admin.register(User)
class ServiceUserAdmin(DeclaredLookupsMixin, _UserAdmin):
    """Django's users, with the checks of this app's lists on what an address may contain."""


@admin.register(Group)
class ServiceGroupAdmin(DeclaredLookupsMixin, GroupAdmin):
    """Django's groups, with the same checks."""


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
