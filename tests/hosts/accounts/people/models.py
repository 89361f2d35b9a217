"""People log in with an email address. Their keys are random."""

import uuid

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class PersonManager(BaseUserManager):
    """Create people."""

    def create_user(self, email, password=None, **fields):
        """Create a person."""
        person = self.model(email=self.normalize_email(email), **fields)
        person.set_password(password)
        person.save(using=self._db)
        return person


class Person(AbstractBaseUser, PermissionsMixin):
    """A person. There is neither a user name nor `get_full_name`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(unique=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    department = models.CharField(max_length=50, blank=True, default="")

    objects = PersonManager()
    USERNAME_FIELD = "email"
