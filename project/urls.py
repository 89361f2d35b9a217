"""Routes of the admin, the API and its documentation; health.py adds its own."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from project import errors
from project.documentation import DocsView, SchemaView

handler400 = errors.bad_request
handler403 = errors.permission_denied
handler404 = errors.page_not_found
handler500 = errors.server_error

urlpatterns = [
    path("api/", include("mastra_memory.api.urls")),
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", DocsView.as_view(url_name="schema"), name="docs"),
    # The last route takes all paths below /api/, so APPEND_SLASH no longer applies to them.
    path("api/schema", RedirectView.as_view(pattern_name="schema")),
    path("api/docs", RedirectView.as_view(pattern_name="docs")),
    re_path(r"^api(?:/[\s\S]*)?\Z", errors.api_not_found),
    path("accounts/", include("rest_framework.urls")),
]
