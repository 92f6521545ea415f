"""Parts of pages that tags make: their markup, and that nothing in a text becomes markup."""

from django.template import Context, Template


def rendered(source: str, /, **values: object) -> str:
    return Template("{% load blocks %}" + source).render(Context(values))


def test_pill_has_its_meaning_in_the_title() -> None:
    assert rendered('{% pill "ok" word %}', word="<b>") == '<span class="st ok">&lt;b&gt;</span>'
    assert 'title="It runs."' in rendered('{% pill "ok" "Done" meaning %}', meaning="It runs.")


def test_notice_of_an_error_is_an_alert_with_code_between_backticks() -> None:
    shown = rendered('{% notice "bad" "Refused" text id="wrong" %}', text="run `<up>`")

    assert shown == (
        '<p class="notice bad" role="alert" id="wrong"><span class="st bad">Refused</span>'
        " run <code>&lt;up&gt;</code></p>"
    )


def test_other_notice_is_a_status_unless_it_answers_what_the_user_did() -> None:
    assert '<p class="notice warn" role="status">' in rendered('{% notice "warn" "Old" "text" %}')
    answer = rendered('{% notice "warn" "Not written down" "text" is_answer=True %}')
    assert '<p class="notice warn" role="alert">' in answer


def test_state_is_in_a_card_or_is_one() -> None:
    inside = '{% state "stale" "Empty" "No topics" %} <p>{{ text }}</p> {% endstate %}'

    assert rendered(inside, text="<i>") == (
        '<div class="state"><span class="st stale">Empty</span><h2>No topics</h2>'
        "<p>&lt;i&gt;</p></div>"
    )
    card = rendered('{% state "bad" "Failed" is_card=True %}{% endstate %}')
    assert card == '<section class="card state"><span class="st bad">Failed</span></section>'
