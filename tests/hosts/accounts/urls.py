"""The product's addresses. Its admin site is its own; Django's default site is not used."""

from django.contrib.admin import AdminSite
from django.urls import include, path

from mastra_memory.admin import register

site = AdminSite(name="office")
register(site)

urlpatterns = [
    path("backend/office/", site.urls),
    path("backend/v1/", include("mastra_memory.api.urls")),
]
