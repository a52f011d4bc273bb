/* Where the first URL redirects to: its parameters without the token, on the same server. */
#include "serve/location.h"

#include <stdint.h>
#include <string.h>

#include "../lib/unit.h"

static void check(const char *query, const char *right)
{
    char location[LOCATION_SIZE];
    assert_int_equal(location_without_token(query, location), 303);
    assert_string_equal(location, right);
}

TEST(without_others_it_is_the_page)
{
    check("", "/");
    check("?", "/");
    check("?token=0123", "/");
    check("?&token=0123&&", "/");
}

TEST(other_parameters_are_kept_as_they_are)
{
    check("?token=0123&run=why&t=5", "/?run=why&t=5");
    check("?run=why&token=0123&t=5", "/?run=why&t=5");
    check("?run=why&t=5&token=0123", "/?run=why&t=5");
    check("?b=2&a=1&token=0123&a=0&b", "/?b=2&a=1&a=0&b");
    check("?x=a%20b+c%2f%2F%26&token=0123", "/?x=a%20b+c%2f%2F%26");
    check("?x=%0d%0aSet-Cookie:%20y&token=0123", "/?x=%0d%0aSet-Cookie:%20y");
    check("?x=1?y=2;z#=&token=0123", "/?x=1?y=2;z#=");
}

/* In every spelling from which libmicrohttpd may have taken it. */
TEST(the_token_is_gone_however_it_is_written)
{
    check("?token=0123&token=4567&a=1", "/?a=1");
    check("?TOKEN=0123&Token=4&a=1", "/?a=1");
    check("?%74oke%6e=0123&%54oken=4&a=1", "/?a=1");
    check("?token%00x=0123&a=1", "/?a=1");
    check("?token&a=1", "/?a=1");
}

TEST(like_tokens_are_others)
{
    static const char *const all[] = {
        "/?tokens=1", "/?tok=1",    "/?to%6=1",   "/?atoken=1",   "/?x=token",    "/?=token=1",
        "/?token%3d", "/?token%=1", "/?token%2=", "/?%2=&token%", "/?to%6Gken=1", "/?%%74oken=1",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check(all[i] + 1, all[i]);
}

TEST(it_is_never_of_another_host)
{
    check("?//host/&token=0123", "/?//host/");
    check("?token=0123&//host/", "/?//host/");
    check("?token=0123&/host", "/?/host");
    check("?token=0123&http://host/", "/?http://host/");
    check("?\\host&token=0123", "/?\\host");
}

TEST(what_no_url_has_is_refused)
{
    static const char all[] = "\r\n\t\x01\x1f \x7f\x80\xff";
    char location[LOCATION_SIZE], query[] = "?token=0123&a=_&b=1";
    for (const char *c = all; *c; c++) {
        *strchr(query, '_') = *c;
        assert_int_equal(location_without_token(query, location), 400);
        assert_string_equal(location, "");
        *strchr(query, *c) = '_';
    }
    assert_int_equal(location_without_token(query, location), 303);
}

TEST(the_longest_fits)
{
    char location[LOCATION_SIZE], query[LOCATION_SIZE];
    memset(query, 'x', sizeof query);
    query[0] = '?';
    query[LOCATION_SIZE - 2] = '\0';
    assert_int_equal(location_without_token(query, location), 303);
    assert_int_equal(strlen(location), LOCATION_SIZE - 1);
    assert_string_equal(location + 1, query);
    query[LOCATION_SIZE - 2] = 'x';
    query[LOCATION_SIZE - 1] = '\0';
    assert_int_equal(location_without_token(query, location), 414);
    assert_string_equal(location, "");
}
