"""Members of the product. Their keys are texts, such as `org/anna`."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class Member(AbstractUser):
    """A user whose key is a text."""

    id = models.CharField(primary_key=True, max_length=200)
    plan = models.CharField(max_length=20, default="free")

    def save(self, *args, **kwargs):
        """Derive the key from the user name."""
        self.id = self.id or f"org/{self.username}"
        super().save(*args, **kwargs)
