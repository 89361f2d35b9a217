"""The product's addresses, with versions of its API as namespaces."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include(("mastra_memory.api.urls", "mastra_memory"), namespace="v1")),
]
