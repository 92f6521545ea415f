"""Lists the URLs of the console's pages. Each view declares who may use it."""

from django.urls import path

from console.pages import (
    account,
    broker_orders,
    brokers,
    changes,
    connector_forms,
    connector_offsets,
    connectors,
    dead_letters,
    extras,
    group_forms,
    groups,
    plans,
    tokens,
    topic_changes,
    users,
)
from console.pages.api import api
from console.pages.broker_orders import RESTART, START, STOP
from console.pages.login import Login, Logout
from console.pages.overview import overview
from console.pages.password import password
from console.pages.preferences import preferences
from console.pages.produce import produce
from console.pages.search import search
from console.pages.series import series
from console.pages.spark import spark
from console.pages.topic import topic
from console.pages.topic_messages import topic_messages
from console.pages.topics import topics
from console.pages.traffic import traffic
from gateway.access.requirements import public

app_name = "console"

urlpatterns = [
    path("", overview, name="overview"),
    path("topics", topics, name="topics"),
    # No topic name contains a plus, and a topic may be named "new".
    path("topics/+new", topic_changes.new_topic, name="new-topic"),
    path("topics/<str:name>", topic, name="topic"),
    path("topics/<str:name>/edit", topic_changes.edit_topic, name="edit-topic"),
    path("topics/<str:name>/partitions", topic_changes.add_partitions, name="add-partitions"),
    path("topics/<str:name>/delete", topic_changes.delete_topic, name="delete-topic"),
    path("topics/<str:name>/messages", topic_messages, name="topic-messages"),
    path("topics/<str:name>/produce", produce, name="produce"),
    path("groups", groups.groups, name="groups"),
    path("groups/<path:name>", groups.group_by_path, name="group"),
    path("group", groups.group, name="group"),
    path("connectors", connectors.connectors, name="connectors"),
    # A connector may have this name; other paths and REST still reach it.
    path("connectors/+new", connector_forms.catalogue, name="connector-catalogue"),
    path("connectors/+new/<path:plugin>", connector_forms.new_connector, name="new-connector"),
    path("connectors/<path:name>/edit", connector_forms.edit_connector, name="edit-connector"),
    path("connectors/<path:name>/offsets", connector_offsets.offsets, name="connector-offsets"),
    path("connectors/<path:name>/delete", connectors.delete, name="delete-connector"),
    path("connectors/<path:name>/dead-letters", dead_letters.letters, name="dead-letters"),
    path("connectors/<path:name>/dead-letters/plan", dead_letters.plan, name="plan-redrive"),
    path("connectors/<path:name>/redrives", dead_letters.runs, name="redrives"),
    path(
        "connectors/<path:name>/redrives/<int:number>/stop", dead_letters.stop, name="stop-redrive"
    ),
    path(
        "connectors/<path:name>/redrives/<int:number>/resume",
        dead_letters.resume,
        name="resume-redrive",
    ),
    path(
        "connectors/<path:name>/tasks/<int:number>/restart",
        connectors.restart_task,
        name="restart-task",
    ),
    path("connectors/<path:name>/order/<slug:verb>", connectors.order, name="order-connector"),
    path("connectors/<path:name>", connectors.connector, name="connector"),
    path("spark", spark, name="spark"),
    path("extras", extras.extras, name="extras"),
    path("extras/<slug:name>/install", extras.install_extra, name="install-extra"),
    path("brokers", brokers.brokers, name="brokers"),
    path("brokers/<int:number>", brokers.broker, name="broker"),
    path("brokers/<int:number>/configs", brokers.edit, name="edit-broker"),
    path("brokers/<int:number>/order", brokers.order, name="broker-order"),
    path("brokers/<int:number>/start", broker_orders.ask, {"verb": START}, name="start-broker"),
    path("brokers/<int:number>/stop", broker_orders.ask, {"verb": STOP}, name="stop-broker"),
    path(
        "brokers/<int:number>/restart", broker_orders.ask, {"verb": RESTART}, name="restart-broker"
    ),
    path("brokers/<int:number>/log", broker_orders.ask_log, name="broker-log"),
    path("brokers/<int:number>/log/<int:order>", broker_orders.log_part, name="broker-log-part"),
    path("api", api, name="api"),
    path("changes", changes.changes, name="changes"),
    path("changes/<int:number>", changes.change, name="change"),
    path("changes.csv", changes.export, {"form": "csv"}, name="changes-csv"),
    path("changes.ndjson", changes.export, {"form": "ndjson"}, name="changes-ndjson"),
    path("plans/show", plans.show, name="show-plan"),
    path("plans/apply", plans.apply, name="apply-plan"),
    path("plans/preview", plans.preview_again, name="preview-again"),
    path("group/reset", group_forms.reset_offsets, name="reset-offsets"),
    path("group/offsets/delete", group_forms.delete_offsets, name="delete-offsets"),
    path("group/delete", group_forms.delete_group, name="delete-group"),
    path("users", users.users, name="users"),
    path("users/new", users.new_user, name="new-user"),
    path("users/<int:number>", users.user, name="user"),
    path("users/<int:number>/grants", users.add_grant, name="add-grant"),
    path("users/<int:number>/grants/<int:grant>/remove", users.remove_grant, name="remove-grant"),
    path("users/<int:number>/<slug:action>", users.change_user, name="change-user"),
    path("tokens", tokens.tokens, name="tokens"),
    # Tokens are never addressed by name.
    path("tokens/new", tokens.new_token, name="new-token"),
    path("tokens/<int:number>/revoke", tokens.revoke_token, name="revoke-token"),
    path("traffic", traffic, name="traffic"),
    path("account", account.account, name="account"),
    path("account/session", account.session, name="session"),
    path("account/sessions/end", account.end_other_sessions, name="end-other-sessions"),
    path("password", password, name="password"),
    path("search", search, name="search"),
    path("series", series, name="series"),
    path("preferences", preferences, name="preferences"),
    path("login", public(Login.as_view()), name="login"),
    # A user who is not signed in is already where this leads.
    path("logout", public(Logout.as_view()), name="logout"),
]
